"""K-means over clients that keep their data, with public server data."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from .._aggregate.shared.single_rows import row_guard
from .._base import (
    MOST_FEATURES,
    check_integer,
    check_real,
    validate_quietly,
)
from .._privacy._checks import check_choice
from .._privacy._domain import Domain
from .._privacy._plan import PrivacyPlan
from .._privacy._units import unit_of
from .._privacy.laws.shares import MOST_SHARES
from .._sklearn_compat import with_callbacks
from ..cluster._centers import BaseDPCenters
from ._engines import LocalEngine, check_distinct, partition, run_rounds
from ._flower import FlowerEngine, is_grid
from ._options import METHODS, check_options, check_server, public_points
from ._plan import entries_of
from ._server import first_message, server_update
from ._starts import server_kmeans_plusplus, server_lloyds, sphere_packing
from ._state import Setup

__all__ = ["FederatedDPKMeans"]

_UNITS = ("auto", "row", "client")
_MOST_ROUNDS = 1000  # each has its share of the budget, and asks all clients
_ROUNDS_WITHOUT_SERVER, _ROUNDS_OF_A_START = 2, 5


class FederatedDPKMeans(BaseDPCenters):
    """K-means over clients that keep their data, with a differential privacy guarantee.

    Three rounds: the clients' second moment gives a subspace; in it, each client counts its rows
    next to each public point of the server, whose weighted clustering costs nothing; the rows
    next to each of its centers are averaged in the whole space. Lloyd rounds may follow. A client
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
    method : {"default", "paper", "lloyd", "kmeans++", "sphere_packing"}, default="default"
        "default": the rounds above; averages about released centers, shares of the budget tuned
        for exact accounting. "paper": the paper's averages about the public center, and its split
        of epsilon; in our benchmarks never better. The others are the paper's baselines, nothing
        but Lloyd rounds: from k-means or k-means++ of the server's points, or from public points
        that are far apart. They win only where server points lie next to all the clusters.
    options : FederatedOptions, optional
        What few fits need: Laplace counts, bounds of the vectors of clients.
    n_lloyd : int or "auto", default="auto"
        Lloyd rounds; "auto": none where there are server data, else 2; 5 from a public start.
    max_rows_per_client : int, optional
        Public; for clients as the unit. A client uses its first rows up to this number, and what
        clients send is clipped to what such a client would send with the server's rows (50 by
        default). It need not be exact.
    n_honest : int, optional
        None: whoever sums adds the noise, once and at full scale. A number: every client adds its
        share of the noise, so that under secure aggregation nobody sees a sum without it. Of the
        clients that answer, at least so many keep their share to themselves, besides the one
        whose rows are in question; their shares alone are the noise that is accounted for. A
        round with fewer answers ends the fit with an error; neighbours have the same clients, one
        of which holds other rows. In :meth:`fit`, where how many clients there are may be
        unreleased, the noise of so many shares is added.
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
    gain_ : ndarray of shape (n_clusters,), or None
        How much the clients have moved each center in the last round, as a part of how much they
        would have without noise: 0 where it stays at the server's points, 1 where noise does not
        count. From releases, free to publish; None with ``method="paper"``.
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

    def __init__(
        self,
        n_clusters=8,
        *,
        epsilon=None,
        delta=1e-6,
        rho=None,
        bounds=None,
        privacy_unit="auto",
        neighbours="add_remove",
        method="default",
        options=None,
        n_lloyd="auto",
        max_rows_per_client=None,
        n_honest=None,
        ledger=None,
        n_jobs=None,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.privacy_unit = privacy_unit
        self.neighbours = neighbours
        self.method = method
        self.options = options
        self.n_lloyd = n_lloyd
        self.max_rows_per_client = max_rows_per_client
        self.n_honest = n_honest
        self.ledger = ledger
        self.n_jobs = n_jobs
        self.random_state = random_state

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
        server = public_points(X_server)
        session = self._open_session(X, self._unit(unit_of(groups) == "group"), server=server)
        X = validate_quietly(self, X, dtype=[np.float64, np.float32])
        return self._fit_session(X, self._units(X, groups), session, server=server)

    @with_callbacks
    @row_guard
    def fit_clients(self, clients, *, n_features=None, X_server=None, timeout=None):
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
            Or the ``Grid`` of a Flower ServerApp (extra ``federated``), with at least one node.
        n_features : int, optional
            Public number of columns; needed without `X_server`.
        X_server : array-like of shape (m, n_features), optional
            Public points.
        timeout : float, optional
            Seconds after which a client that does not answer in a round is given up; it then
            counts as empty. None: all are waited for.

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
            With `n_honest`, when no more clients than that answer in a round; for a Flower grid
            without nodes, before anything is charged.
        """
        server = public_points(X_server)
        if n_features is None and server is None:
            raise ValueError("n_features must be given where there is no X_server.")
        width = server.shape[1] if n_features is None else n_features
        width = check_integer(width, "n_features", low=1, high=MOST_FEATURES)
        if timeout is not None:
            check_real(timeout, "timeout")
        engine = self._make_engine(clients, timeout)
        session = self._start_session(self._make_plan(width, self._unit(True), server=server))
        self.n_features_in_ = width
        if session.noise == "seeded" and isinstance(engine, LocalEngine):
            engine.seed_shares(int(session.rng("shares").integers(2**62)))
        return self._fit_session(None, engine, session, server=server)

    def _make_engine(self, clients, seconds):
        if is_grid(clients):
            engine = FlowerEngine(clients, seconds)
            engine.check()
            return engine
        try:
            clients = list(clients.values() if isinstance(clients, Mapping) else clients)
        except TypeError:
            raise TypeError("clients must be an iterable or a mapping.") from None
        check_distinct(clients)
        return LocalEngine(clients, self.n_jobs, seconds)

    def _fit(self, X, units, session, progress, *, server=None):
        per_client = session.plan.unit == "group"
        d = self.n_features_in_
        engine = units if X is None else LocalEngine(partition(X, units), self.n_jobs)
        setup = replace(
            self._setup(d, per_client, server, session.rng("start")),
            clients_add=X is None and self.n_honest is not None,
        )
        state = first_message(setup, session)
        state, self.communication_ = run_rounds(state, server_update, session, engine, progress)
        self.n_rounds_ = len(self.communication_)
        self.subspace_ = state.subspace
        self.server_points_ = (
            None if state.proxy is None else state.proxy * state.unit + state.domain.center
        )
        self.server_weights_ = None if state.proxy is None else state.weights
        self.radius_, self.status_ = state.domain.radius, state.status
        self.gain_ = (
            None if state.gain is None else state.gain[np.argsort(-state.counts, kind="stable")]
        )
        self._set_centers(np.empty((0, d)) if X is None else X, state.centers, state.counts)
        if X is None:
            del self.labels_

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
        check_choice("unit", unit, ("row", "group"))
        n_features = check_integer(n_features, "n_features", low=1, high=MOST_FEATURES)
        return self._make_plan(n_features, unit, server=public_points(X_server))

    def _domain(self, n_features, server=None):
        domain = super()._domain(n_features)
        if domain is not None or server is None:
            return domain
        # Public points: their mean and their radius about it.
        center = server.mean(axis=0)
        reach = np.linalg.norm(server - center, axis=1).max(initial=0.0)
        return Domain(center, max(float(reach), 1e-9 * float(np.abs(center).max()), 1e-300))

    def _check_parameters(self, n_features, server=None):
        super()._check_parameters(n_features)
        for name, known in (
            ("privacy_unit", _UNITS),
            ("neighbours", ("add_remove", "replace")),
            ("method", METHODS),
        ):
            check_choice(name, getattr(self, name), known)
        options = check_options(self.options)
        self._check_rounds()
        if self.n_honest is not None:
            check_integer(self.n_honest, "n_honest", low=1, high=MOST_SHARES)
            if options.count_noise == "laplace":
                raise ValueError(
                    "count_noise='laplace' needs n_honest=None: sums of Laplace "
                    "shares are not Laplace."
                )
        if self.max_rows_per_client is not None:
            check_integer(self.max_rows_per_client, "max_rows_per_client", low=1)
        if server is not None:
            check_server(server, self.n_clusters, n_features)
        elif self.method in ("kmeans++", "lloyd"):
            raise ValueError(f"method={self.method!r} needs X_server.")

    def _check_rounds(self):
        if isinstance(self.n_lloyd, str):
            if self.n_lloyd != "auto":
                raise ValueError("n_lloyd must be an integer or 'auto'.")
            return
        check_integer(self.n_lloyd, "n_lloyd", low=int(self._public_start), high=_MOST_ROUNDS)

    @property
    def _public_start(self):
        """Whether a fit is nothing but Lloyd rounds."""
        return self.method not in ("default", "paper")

    def _rounds(self, server):
        """How many Lloyd rounds."""
        if self.n_lloyd != "auto":
            return self.n_lloyd
        if self._public_start:
            return _ROUNDS_OF_A_START
        return 0 if server is not None else _ROUNDS_WITHOUT_SERVER

    def _setup(self, n_features, per_client, server, rng):
        paper, options = self.method == "paper", check_options(self.options)
        return Setup(
            self.n_clusters,
            n_features,
            self._domain(n_features, server),
            server,
            self._start(n_features, server, rng),
            self._rounds(server),
            per_client,
            residuals=not paper,
            local_means=paper and per_client,
            most_rows=self.max_rows_per_client,
            shares=options.client_bounds,
            laplace=options.count_noise == "laplace",
            n_honest=self.n_honest,
            swap=self.neighbours == "replace",
        )

    def _start(self, n_features, server, rng):
        """Public centers from the public domain, or None for the method's own rounds."""
        k = self.n_clusters
        if self.method == "kmeans++":
            return lambda domain: server_kmeans_plusplus(server, k, int(rng.integers(2**31)))
        if self.method == "lloyd":
            return lambda domain: server_lloyds(server, k, rng)
        if self.method == "sphere_packing":
            return lambda domain: domain.center + sphere_packing(k, n_features, domain.radius, rng)
        return None

    def _relation(self, unit):
        relation = "replace" if self.neighbours == "replace" else "add or remove"
        # A client that adds noise takes part whether it has rows or not.
        return relation + " the rows of" * (self.n_honest is not None and unit == "group")

    def _make_plan(self, n_features, unit, server=None):
        target = self._check_shared()
        self._check_parameters(n_features, server)
        setup = self._setup(n_features, unit == "group", server, None)
        shared = self.n_honest is not None
        entries = entries_of(
            setup.rounds,
            target,
            unit,
            paper=self.method == "paper",
            laplace=setup.laplace,
            shared=shared,
        )
        plan = PrivacyPlan(target, entries, unit, self._notes(unit), self._relation(unit))
        if shared and plan.epsilon > 700:
            raise ValueError("epsilon or rho is too large for n_honest: noise in shares.")
        return plan

    def _notes(self, unit):
        who = "a client with all its rows" if unit == "group" else "a row"
        notes = (f"The unit is {who}. The server's points are public.",)
        if self.n_honest is not None:
            notes += (
                f"Clients add the noise: at least {self.n_honest} of those that answer, "
                "besides the one in question, must keep their share to themselves.",
            )
        return notes
