"""K-means over clients that keep their data, with public server data."""

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from .._aggregate.shared.blocks import block_rows
from .._aggregate.shared.single_rows import row_guard
from .._base import (
    MOST_FEATURES,
    check_integer,
    check_real,
    check_table,
    validate_quietly,
)
from .._privacy._checks import check_choice
from .._privacy._domain import Domain
from .._privacy._plan import PrivacyPlan
from .._privacy._units import unit_of
from .._privacy.laws.shares import MOST_SHARES
from .._sklearn_compat import with_callbacks
from ..cluster._centers import BaseDPCenters
from ._engines import LocalEngine, check_distinct, run_rounds
from ._plan import entries_of
from ._server import Setup, first_message, server_update
from ._starts import server_kmeans_plusplus, server_lloyds, sphere_packing

__all__ = ["FederatedDPKMeans"]

_UNITS = ("auto", "row", "client")
_STARTS = ("feddp", "kmeans++", "lloyd", "sphere_packing")
_FARTHEST = 1e100  # of the server's numbers: no square of a distance overflows
_BLOCK = 2**16  # rows of a client, where nobody says who holds what
_MOST_ROUNDS = 1000  # each has its share of the budget, and asks all clients
_ROUNDS_WITHOUT_SERVER, _ROUNDS_OF_A_START = 2, 5


class FederatedDPKMeans(BaseDPCenters):
    """K-means over clients that keep their data, with a differential privacy guarantee.

    Three rounds: the clients' second moment gives a subspace; in it, each client counts its rows
    next to each public point of the server, whose weighted clustering costs nothing; the rows
    next to each of its centres are averaged in the whole space. Lloyd rounds may follow. A client
    sends vectors of integers that are of use only in their sum; the server adds noise to the sums
    and sees nothing else.

    Parameters
    ----------
    n_clusters : int, default=8
    epsilon, delta, rho : see :class:`~sklearn_dp.DPKMeans`
    bounds : float or pair (low, high), optional
        Public bounds of the rows. None: the ball about the mean of the server's points that holds
        them; without these, a radius is estimated privately, and paid for.
    privacy_unit : {"auto", "row", "client"}, default="auto"
        Who is protected: a row, or a client with all its rows. "auto": a client where the fit is
        told who the clients are, a row otherwise.
    neighbours : {"add_remove", "replace"}, default="add_remove"
        What the guarantee is for: one unit more or less, or one in the place of another, where
        how many there are is public. Both hold for "replace", which needs up to twice the noise.
    server_init : {"feddp", "kmeans++", "lloyd", "sphere_packing"}, default="feddp"
        Where Lloyd rounds start: from the rounds above, from the server's points alone, or from
        public points that are far apart.
    n_lloyd : int or "auto", default="auto"
        Lloyd rounds; "auto": none where there are server data, else 2; 5 after another start.
    max_rows_per_client : int, optional
        Public; for clients as the unit. A client uses its first rows up to this number, and what
        clients send is clipped to what such a client would send with the server's rows (50 by
        default). It need not be exact.
    method : {"default", "paper"}, default="default"
        "default": averages about released centres, shares of the budget tuned for exact
        accounting. "paper": the paper's averages about the public centre, and its split.
    count_noise : {"gaussian", "laplace"}, default="gaussian"
        "laplace" as in the paper; the plan is then accounted as zCDP.
    noise : {"server", "clients"}, default="server"
        Who adds the noise: whoever sums, once and at full scale, or every client its share of it.
        Under secure aggregation nobody then sees a sum without noise; neighbours have the same
        clients, one of which holds other rows.
    n_honest : int, optional
        For ``noise="clients"``: of the clients that answer, how many at least keep their share to
        themselves, besides the one whose rows are in question. Their shares alone are the noise
        that is accounted for. A round with fewer answers ends the fit with an error. In
        :meth:`fit`, where how many clients there are may be private, so many shares are added.
    client_bounds : dict, optional
        For clients as the unit: norm that a vector is clipped to, over the largest norm that a
        client may have. By name, such as ``{"second moment": 0.2}``.
    client_timeout : float, optional
        Seconds after which a client that does not answer is given up.
    engine : {"local", "flower"}, default="local"
        "flower" for :meth:`fit_clients` with a Flower ``Grid`` (extra ``federated``).
    ledger, n_jobs, random_state : see :class:`~sklearn_dp.DPKTupleKMeans`

    Attributes
    ----------
    cluster_centers_, cluster_weights_, labels_, radius_, status_, privacy_report_ :
        See :class:`~sklearn_dp.DPKMeans`. A client weighs one, shared by its rows, where clients
        are the unit; there are no labels after :meth:`fit_clients`.
    subspace_ : ndarray of shape (q, n_features), or None
        Orthonormal rows that span the released subspace; None without one.
    server_points_ : ndarray of shape (m, n_features), or None
        The server's distinct points, on the public grid.
    server_weights_ : ndarray of shape (m,), or None
        Their noisy weights.
    n_rounds_ : int
    communication_ : list of dict
        For each round, numbers and bytes that a client receives and sends, from public shapes.

    See Also
    --------
    elbow : Chooses `n_clusters` from the noisy weights, at no cost.

    Notes
    -----
    Guarantee: a fit is (epsilon, delta)-differentially private for adding or removing one row
    (one client; see `neighbours`), by exact Gaussian-DP accounting, towards everybody who sees
    what the server sends and publishes; the sums themselves are seen by a trusted aggregator, or
    by nobody under secure aggregation. `X_server` is public and gets no protection: never draw it
    from clients.

    A client that fails, hangs, or answers nonsense counts as empty. The noise stays the same, and
    so does the guarantee, unless rows are the unit and a client fails because of single rows.

    Accuracy is best where server points lie near all the clusters; without server data
    :class:`~sklearn_dp.DPKMeans` on pooled rows is far better, where pooling is an option.

    References
    ----------
    Scott, J., Lampert, C. H. and Saulpic, D. (2025). Differentially private federated k-means
    clustering with server-side data. ICML. Algorithms 1 and 2, with noise for the squared radius
    in step 1, which the released code lacks.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp import FederatedDPKMeans
    >>> rng = np.random.default_rng(0)
    >>> places = np.array([[-0.5, 0.0], [0.5, 0.0]])
    >>> X = np.repeat(places, 5000, axis=0) + 0.05 * rng.normal(size=(10000, 2))
    >>> server = np.repeat(places, 20, axis=0) + 0.05 * rng.normal(size=(40, 2))
    >>> model = FederatedDPKMeans(n_clusters=2, epsilon=1.0).fit(X, X_server=server)
    >>> np.sort(model.cluster_centers_[:, 0]).round(1)
    array([-0.5,  0.5])
    """

    _server = None  # public points of the fit that is going on

    def __init__(self, n_clusters=8, *, epsilon=None, delta=1e-6, rho=None, bounds=None,
                 privacy_unit="auto", neighbours="add_remove", server_init="feddp", n_lloyd="auto",
                 max_rows_per_client=None, method="default", count_noise="gaussian",
                 noise="server", n_honest=None, client_bounds=None, client_timeout=None,
                 engine="local", ledger=None, n_jobs=None, random_state=None):
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.privacy_unit = privacy_unit
        self.neighbours = neighbours
        self.server_init = server_init
        self.n_lloyd = n_lloyd
        self.max_rows_per_client = max_rows_per_client
        self.method = method
        self.count_noise = count_noise
        self.noise = noise
        self.n_honest = n_honest
        self.client_bounds = client_bounds
        self.client_timeout = client_timeout
        self.engine = engine
        self.ledger = ledger
        self.n_jobs = n_jobs
        self.random_state = random_state

    # -- fit ------------------------------------------------------------------------------------

    @with_callbacks
    @row_guard
    def fit(self, X, y=None, *, groups=None, X_server=None):
        """Simulate a federation over the rows of one array.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored
        groups : array-like of shape (n_samples,), optional
            Which client holds each row. With ``privacy_unit="auto"`` or "client" the guarantee is
            for all rows of a client; with "row" it has no effect on the result, bit for bit.
        X_server : array-like of shape (m, n_features), optional
            Public points.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            For invalid input or parameters; the message names the parameter.
        BudgetExceededError
            When `ledger` does not hold enough; the data have not been looked at.
        """
        check_choice("privacy_unit", self.privacy_unit, _UNITS)
        if self.privacy_unit == "client" and groups is None:
            raise ValueError("privacy_unit='client' needs groups: the client of each row.")
        with self._serving(X_server):
            session = self._open_session(X, self._unit(unit_of(groups) == "group"))
            X = validate_quietly(self, X, dtype=[np.float64, np.float32])
            return self._fit_session(X, self._units(X, groups), session)

    @with_callbacks
    @row_guard
    def fit_clients(self, clients, *, n_features=None, X_server=None):
        """Fit to clients of which nothing but sums comes back.

        Parameters
        ----------
        clients : iterable, mapping, or Flower Grid
            Each client is an array of rows, a function without arguments that returns one (it is
            called in every round), or an object with a method ``update(kind, message)`` that
            returns what :func:`client_update` does. Objects may have a ``client_id``; ids must
            be distinct. Nobody may be there twice: the same object, or arrays that share memory,
            are refused, because the guarantee is for what *one* client holds. Equal rows in
            different places are not looked for: that they are somebody else's is for you to know.
            With ``engine="flower"``, the ``Grid`` of a ServerApp, with at least one node.
        n_features : int, optional
            Public number of columns; needed without `X_server`.
        X_server : array-like of shape (m, n_features), optional
            Public points.

        Returns
        -------
        self : object

        Notes
        -----
        The unit of privacy is the client, unless ``privacy_unit="row"``.

        Raises
        ------
        ValueError
            For clients that are there twice; nothing is charged.
        RuntimeError
            With ``noise="clients"``, when no more than `n_honest` clients answer in a round; for a
            Flower grid without nodes, before anything is charged.
        """
        with self._serving(X_server):
            if n_features is None and self._server is None:
                raise ValueError("n_features must be given where there is no X_server.")
            width = self._server.shape[1] if n_features is None else n_features
            width = check_integer(width, "n_features", low=1, high=MOST_FEATURES)
            engine = self._make_engine(clients)
            session = self._start_session(self._make_plan(width, self._unit(True)))
            self.n_features_in_ = width
            if session.noise == "seeded" and self.engine == "local":
                engine.seed_shares(int(session.rng("shares").integers(2**62)))
            return self._fit_session(None, engine, session)

    def _make_engine(self, clients):
        if self.engine == "flower":
            from ._flower import FlowerEngine

            engine = FlowerEngine(clients, seconds=self.client_timeout)
            engine.check()
            return engine
        try:
            clients = list(clients.values() if isinstance(clients, Mapping) else clients)
        except TypeError:
            raise TypeError("clients must be an iterable or a mapping.") from None
        check_distinct(clients)
        return LocalEngine(clients, self.n_jobs, self.client_timeout)

    def _fit(self, X, units, session, progress):
        per_client = session.plan.unit == "group"
        d = self.n_features_in_
        engine = units if X is None else LocalEngine(_partition(X, units), self.n_jobs)
        setup = replace(self._setup(d, per_client, session.rng("start")),
                        clients_add=X is None and self.noise == "clients")
        state = first_message(setup, session)
        state, self.communication_ = run_rounds(state, server_update, session, engine, progress)
        self.n_rounds_ = len(self.communication_)
        self.subspace_ = state.subspace
        self.server_points_ = (None if state.proxy is None
                               else state.proxy * state.unit + state.domain.center)
        self.server_weights_ = None if state.proxy is None else state.weights
        self.radius_, self.status_ = state.domain.radius, state.status
        self._set_centers(np.empty((0, d)) if X is None else X, state.centers, state.counts)
        if X is None:
            del self.labels_

    # -- public facts ---------------------------------------------------------------------------

    @contextmanager
    def _serving(self, X_server):
        """Have the server's points at hand for the time of a fit."""
        if X_server is not None:
            self._server = check_table(X_server, "X_server", dtype=np.float64, copy=True)
        try:
            yield
        finally:
            self.__dict__.pop("_server", None)

    def _unit(self, told):
        return "group" if told and self.privacy_unit != "row" else "row"

    def privacy_plan(self, n_features, *, unit="row", X_server=None):
        """What a fit would release and spend, before any data are seen.

        Parameters
        ----------
        n_features : int
        unit : {"row", "group"}, default="row"
            "group" for clients as the unit.
        X_server : array-like of shape (m, n_features), optional
            With server data there are other rounds than without.

        Returns
        -------
        plan : PrivacyPlan
        """
        with self._serving(X_server):
            return super().privacy_plan(n_features, unit=unit)

    def _domain(self, n_features):
        domain = super()._domain(n_features)
        if domain is not None or self._server is None:
            return domain
        if np.abs(self._server).max() > _FARTHEST:
            raise ValueError(f"X_server: numbers must not exceed {_FARTHEST:g}.")
        # Public points: their mean and their radius about it.
        center = self._server.mean(axis=0)
        reach = np.linalg.norm(self._server - center, axis=1).max(initial=0.0)
        return Domain(center, max(float(reach), 1e-9 * float(np.abs(center).max()), 1e-300))

    def _check_parameters(self, n_features):
        super()._check_parameters(n_features)
        for name, known in (("privacy_unit", _UNITS),
                            ("neighbours", ("add_remove", "replace")),
                            ("server_init", _STARTS), ("method", ("default", "paper")),
                            ("count_noise", ("gaussian", "laplace")),
                            ("noise", ("server", "clients")),
                            ("engine", ("local", "flower"))):
            check_choice(name, getattr(self, name), known)
        self._check_rounds()
        self._check_noise()
        if self.max_rows_per_client is not None:
            check_integer(self.max_rows_per_client, "max_rows_per_client", low=1)
        if self.client_timeout is not None:
            check_real(self.client_timeout, "client_timeout")
        self._check_client_bounds()
        self._check_server(n_features)

    def _check_client_bounds(self):
        if self.client_bounds is None:
            return
        if not isinstance(self.client_bounds, Mapping):
            raise TypeError("client_bounds must be a dict of numbers.")
        for name, value in self.client_bounds.items():
            check_real(value, f"client_bounds[{name!r}]", high=1 + 1e-12)

    def _check_rounds(self):
        if isinstance(self.n_lloyd, str):
            if self.n_lloyd != "auto":
                raise ValueError("n_lloyd must be an integer or 'auto'.")
            return
        check_integer(self.n_lloyd, "n_lloyd", low=0 if self.server_init == "feddp" else 1,
                      high=_MOST_ROUNDS)

    def _check_noise(self):
        if self.noise == "server":
            return
        if self.n_honest is None:
            raise ValueError("n_honest must be given for noise='clients'.")
        check_integer(self.n_honest, "n_honest", low=1, high=MOST_SHARES)
        if self.count_noise == "laplace":
            raise ValueError("count_noise='laplace' needs noise='server': sums of Laplace shares "
                             "are not Laplace.")

    def _check_server(self, n_features):
        if self._server is None:
            if self.server_init in ("kmeans++", "lloyd"):
                raise ValueError(f"server_init={self.server_init!r} needs X_server.")
            return
        if self._server.shape[1] != n_features:
            raise ValueError("X_server must have as many columns as X.")
        if len(np.unique(self._server, axis=0)) < self.n_clusters:
            raise ValueError("X_server must hold at least n_clusters distinct points.")

    @property
    def _n_lloyd(self):
        if self.n_lloyd != "auto":
            return self.n_lloyd
        if self.server_init != "feddp":
            return _ROUNDS_OF_A_START
        return 0 if self._server is not None else _ROUNDS_WITHOUT_SERVER

    def _setup(self, n_features, per_client, rng):
        paper = self.method == "paper"
        return Setup(
            self.n_clusters, n_features, self._domain(n_features),
            self._server, self._start(n_features, rng), self._n_lloyd, per_client,
            residuals=not paper, local_means=paper and per_client,
            most_rows=self.max_rows_per_client, shares=self.client_bounds,
            laplace=self.count_noise == "laplace",
            n_honest=self.n_honest if self.noise == "clients" else None,
            swap=self.neighbours == "replace")

    def _start(self, n_features, rng):
        """Public centres from the public domain, or None for the method's own rounds."""
        k, server = self.n_clusters, self._server
        if self.server_init == "kmeans++":
            return lambda domain: server_kmeans_plusplus(server, k, int(rng.integers(2**31)))
        if self.server_init == "lloyd":
            return lambda domain: server_lloyds(server, k, rng)
        if self.server_init == "sphere_packing":
            return lambda domain: domain.center + sphere_packing(k, n_features, domain.radius, rng)
        return None

    # -- plan -----------------------------------------------------------------------------------

    def _relation(self, unit):
        relation = "replace" if self.neighbours == "replace" else "add or remove"
        # A client that adds noise takes part whether it has rows or not.
        return relation + " the rows of" * (self.noise == "clients" and unit == "group")

    def _make_plan(self, n_features, unit):
        target = self._check_shared()
        self._domain(n_features)
        self._check_parameters(n_features)
        rounds = self._setup(n_features, unit == "group", None).rounds
        shared = self.noise == "clients"
        entries = entries_of(rounds, target, unit, paper=self.method == "paper",
                             laplace=self.count_noise == "laplace", shared=shared)
        plan = PrivacyPlan(target, entries, unit, self._notes(unit), self._relation(unit))
        if shared and plan.epsilon > 700:
            raise ValueError("epsilon or rho is too large for noise='clients'.")
        return plan

    def _notes(self, unit):
        who = "a client with all its rows" if unit == "group" else "a row"
        notes = (f"The unit is {who}. The server's points are public.",)
        if self.noise == "clients":
            notes += (f"Clients add the noise: at least {self.n_honest} of those that answer, "
                      "besides the one in question, must keep their share to themselves.",)
        return notes


def _partition(X, units):
    """The rows of each client, read when it is asked."""
    if units.index is None:
        parts = [slice(start, start + _BLOCK) for start in range(0, len(X), _BLOCK)]
    else:
        parts = block_rows(units.index, units.size)
    return [_Reader(X, part) for part in parts]


class _Reader:
    """A client that reads its rows from an array."""

    def __init__(self, X, part):
        self._X, self._part = X, part

    def __call__(self):
        return self._X[self._part]
