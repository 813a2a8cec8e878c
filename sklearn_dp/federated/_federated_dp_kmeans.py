"""K-means over clients that keep their data; see `_parameters`, and `_engines` for the rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import KMeans

from .._base import MOST_CLUSTERS, MOST_FEATURES, check_integer, check_real, check_sklearn_seed
from .._costs.numbers import check_choice
from .._costs.plan import PrivacyPlan
from .._intervals import StandardErrors
from .._privacy._session import PrivacySession
from .._privacy._units import unit_of
from .._rows.single_rows import row_guard
from .._silence import relayed_signals
from .._sklearn_compat import with_callbacks
from ..cluster._centers import BaseDPCenters
from ._clients import FlowerEngine, LocalEngine, check_distinct, is_grid, partition, run_rounds
from ._learn import WITH_ERRORS, keep_errors
from ._parameters import (
    UNITS,
    FederatedOptions,
    check_parameters,
    plan_of,
    public_ball,
    public_columns,
    public_points,
    refuse_clients,
    setup_of,
)
from ._server import first_message, server_update


class FederatedDPKMeans(StandardErrors, BaseDPCenters):
    """K-means over clients that keep their data, with a differential privacy guarantee.

    There are three rounds. The second moment of the clients' rows gives a subspace. In it, each
    client counts its rows near each public point of the server; clustering the points with these
    weights costs nothing. Then the rows nearest to each of the resulting centers are averaged in
    the whole space. Lloyd rounds may follow. A client sends vectors of integers that are only
    useful as part of a sum; the server adds noise to the sums and sees nothing else.

    Parameters
    ----------
    n_clusters : int, "auto" or pair (low, high), default=8
        Number of clusters, public. "auto" and a pair let the fit choose it, from 1 to 30 or in that
        range, by the gap statistic of the server's points with their noisy weights (without server
        data: of public points), which costs nothing. With a public start (such as
        ``method="lloyd"``) it must be an integer. See also :func:`elbow`.
    epsilon : float, default=1.0
        Privacy budget of one fit.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    bounds : float or pair (low, high), optional
        Public bounds of the rows. None: the ball around the mean of the server's points that
        contains them; without server points, part of the budget is spent on finding a radius.
    ledger : PrivacyLedger or str, optional
        Ledger with the total budget of a study, or its file; charged before any client is queried.
    privacy_unit : {"auto", "row", "client"}, default="auto"
        What is protected: a row, or a client with all its rows. "auto": a client in a
        fit with `groups` or to clients, otherwise a row.
    relation : {"add or remove", "replace"}, default="add or remove"
        What the guarantee covers: adding or removing one unit, or replacing one unit by another if
        their number is public. With "replace" both hold, which needs up to twice the noise.
    method : {"default", "paper", "lloyd", "kmeans++", "sphere_packing"}, default="default"
        "default": the rounds above; averages around released centers, with shares of the budget
        tuned for exact accounting. "paper": the paper's averages around the public center, and its
        split of epsilon; never better in our benchmarks. The others are the paper's baselines,
        which consist of Lloyd rounds only: from k-means or k-means++ of the server's points, or
        from public points that are far apart. They are better only if server points lie near all
        clusters.
    options : FederatedOptions, optional
        Rarely needed options: Laplace counts, and bounds of the vectors of clients.
    n_lloyd : int or "auto", default="auto"
        Number of Lloyd rounds. "auto": none with server data, otherwise 2; 5 from a public start.
    max_rows_per_client : int, optional
        Public; used if clients are the unit. A client uses at most this many rows (its first ones),
        and what it sends is clipped to what such a client would send with the server's rows (50 by
        default). It need not be exact.
    n_honest : int, optional
        None: whoever sums adds the noise, once and at full scale. A number: every client adds a
        share of the noise, so that under secure aggregation nobody sees a sum without it. At least
        this many of the answering clients, in addition to the one whose rows are in question, must
        keep their shares secret; only their shares are noise in the accounting. A round with
        fewer answers ends the fit with an error. Neighbors have the same clients, one of which has
        different rows. In :meth:`fit`, where the number of clients may be private, exactly this
        many shares of noise are added.
    n_jobs : int, optional
        Number of clients queried at the same time; see scikit-learn's glossary. Results are bitwise
        identical for any value.
    random_state : int, RandomState instance or None, default=None
        None: the noise comes from the operating system. Any other value makes the noise
        reproducible and voids the guarantee against anyone who knows it.

    Attributes
    ----------
    cluster_centers_, cluster_weights_, labels_, radius_, status_, messages_, privacy_report_
        As of :class:`~sklearn_dp.DPKMeans`. If clients are the unit, each client has a weight of
        one, divided among its rows. There are no labels after :meth:`fit_clients`.
    cluster_centers_std_error_, cluster_weights_std_error_ : ndarray
        Standard errors, with the same shapes. Those of centers cover privacy noise and the sampling
        of units (each as if it were one row), those of weights cover the noise. Not available with
        ``method="paper"`` or Laplace counts.
    cluster_centers_status_, column_status_ : ndarray of str
        As of :class:`~sklearn_dp.DPKMeans`, if there are standard errors.
    subspace_ : ndarray of shape (q, n_features), or None
        Orthonormal rows that span the released subspace; None without one.
    server_points_ : ndarray of shape (m, n_features), or None
        The server's distinct points, on the public grid.
    server_weights_ : ndarray of shape (m,), or None
        Their noisy weights.
    n_clusters_, n_clusters_criterion_
        As of :class:`~sklearn_dp.DPKMeans`.
    gain_ : ndarray of shape (n_clusters,), or None
        How far the clients moved each center in the last round, as a fraction of how far they would
        have moved it without noise: 0 if it stays at the server's points, 1 if noise plays no role.
        Computed from releases, so it may be published; None with ``method="paper"``.
    n_rounds_ : int
        Number of rounds; all clients are queried in each.
    communication_ : list of dict
        For each round, numbers and bytes that a client receives and sends, from public shapes.

    See Also
    --------
    elbow : Choose `n_clusters` from the noisy weights, at no cost.

    Notes
    -----
    Guarantee: a fit is (epsilon, delta)-differentially private for adding or removing one row (one
    client; see `relation`), by exact Gaussian-DP accounting, against anyone who sees what the
    server sends and publishes. The sums themselves are seen by a trusted aggregator, or by nobody
    under secure aggregation. `X_server` is public and not protected: never take it from clients.

    A client that fails, hangs, or sends an invalid answer is treated as empty. The noise and the
    guarantee stay the same, unless rows are the unit and a client fails because of single rows.

    Accuracy is best if server points lie near all clusters. Without server data,
    :class:`~sklearn_dp.DPKMeans` on pooled rows is far better, if pooling is an option.

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

    _chooses_number = True
    _feature_axes = {"cluster_centers_": 1}

    @property
    def _with_errors(self) -> dict[str, Any]:  # type: ignore[override]
        """The attributes that have standard errors after this fit."""
        return WITH_ERRORS if hasattr(self, "cluster_centers_std_error_") else {}

    def __init__(
        self,
        n_clusters: int | str | tuple[int, int] = 8,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        bounds: Any = None,
        ledger: Any = None,
        privacy_unit: str = "auto",
        relation: str = "add or remove",
        method: str = "default",
        options: FederatedOptions | None = None,
        n_lloyd: int | str = "auto",
        max_rows_per_client: int | None = None,
        n_honest: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(epsilon, delta, rho, ledger, n_jobs, random_state)
        self.n_clusters = n_clusters
        self.bounds = bounds
        self.privacy_unit = privacy_unit
        self.relation = relation
        self.method = method
        self.options = options
        self.n_lloyd = n_lloyd
        self.max_rows_per_client = max_rows_per_client
        self.n_honest = n_honest

    @with_callbacks
    @row_guard
    @relayed_signals()  # Ctrl-C while a client is asked ends the fit
    def fit(
        self,
        X: ArrayLike,
        y: Any = None,
        *,
        groups: ArrayLike | None = None,
        X_server: ArrayLike | None = None,
    ) -> Self:
        """Simulate a federation over the rows of one array.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Dense, finite. Rows outside `bounds` are clipped.
        y : Ignored
            Not used.
        groups : array-like of shape (n_samples,), optional
            The client that holds each row. With ``privacy_unit="auto"`` or "client" the guarantee
            covers all rows of a client; with "row", results are bitwise identical for any value.
        X_server : array-like of shape (m, n_features), optional
            Public points.

        Returns
        -------
        self : FederatedDPKMeans
            Fitted.

        Raises
        ------
        ValueError, TypeError
            For invalid input or parameters; the message names the parameter.
        BudgetExceededError
            If the remaining budget of `ledger` is too small. The data have not been read.
        """
        check_choice("privacy_unit", self.privacy_unit, UNITS)
        refuse_clients(X)
        server = public_points(X_server, self._schema(X).names)
        session = self._open_session(X, self._unit(unit_of(groups) == "group"), server=server)
        X = self._validated(X)
        return self._fit_session(X, self._units(X, groups), session, server=server)

    @with_callbacks
    @row_guard
    @relayed_signals()  # Ctrl-C while a client is asked ends the fit
    def fit_clients(
        self,
        clients: Iterable[Any] | Mapping[Any, Any] | Any,
        *,
        n_features: int | Sequence[str] | None = None,
        X_server: ArrayLike | None = None,
        timeout: float | None = None,
    ) -> Self:
        """Fit to clients, which send only contributions to sums.

        Parameters
        ----------
        clients : iterable, mapping, or Flower Grid
            Each client is an array of rows, a function without arguments that returns one (it is
            called in every round), or an object with a method ``update(kind, message)`` that
            returns what :func:`client_update` does. Objects may have a ``client_id``; ids must be
            distinct. No client may appear twice: the same object, or arrays that share memory, are
            refused, because the guarantee covers what *one* client holds. Equal rows in different
            places are not detected; make sure that they belong to different people. Or the ``Grid``
            of a Flower ServerApp (extra ``federated``), with at least one node.
        n_features : int or list of str, optional
            Public number of columns, or their names. By default those of `X_server`, or of the
            clients that are tables, if all of these have the same. A data frame that a function
            returns needs names: without them its columns cannot be identified, and the client is
            treated as empty.
        X_server : array-like of shape (m, n_features), optional
            Public points.
        timeout : float, optional
            Seconds to wait for a client in each round; a client that does not answer in time is
            treated as empty. None: wait for all clients.

        Returns
        -------
        self : FederatedDPKMeans
            Fitted.

        Raises
        ------
        ValueError
            If a client appears twice; nothing is charged.
        RuntimeError
            With `n_honest`, if no more clients than that answer in a round; for a Flower grid
            without nodes, before anything is charged.

        Notes
        -----
        The privacy unit is the client, unless ``privacy_unit="row"``.
        """
        if timeout is not None:
            check_real(timeout, "timeout")
        engine: Any
        if is_grid(clients):
            engine, arrays = FlowerEngine(clients, timeout), []
            engine.check()
        else:
            try:
                arrays = list(clients.values() if isinstance(clients, Mapping) else clients)
            except TypeError:
                raise TypeError("clients must be an iterable or a mapping.") from None
            check_distinct(arrays)
            engine = LocalEngine(arrays, self.n_jobs, timeout)
        given = public_columns(n_features, X_server, arrays)
        server = public_points(X_server, given.names)
        self._check_names(given.names)
        plan = self._make_plan(given.n_features, self._unit(True), server=server)
        session = self._start_session(plan)
        self.n_features_in_ = given.n_features
        if given.names is not None:
            self.feature_names_in_ = np.array(given.names, dtype=object)
        if session.noise == "seeded" and isinstance(engine, LocalEngine):
            engine.seed_shares(int(session.rng("shares").integers(2**62)))
        return self._fit_session(None, engine, session, server=server)

    def _fit(
        self,
        X: np.ndarray | None,
        units: Any,
        session: PrivacySession,
        progress: Callable[[str], None] | None,
        *,
        server: np.ndarray | None = None,
    ) -> None:
        """The rounds of a fit; `units` makes clients of `X`, or is an engine that asks others."""
        per_client = session.plan.unit == "group"
        d = self.n_features_in_
        engine = units if X is None else LocalEngine(partition(X, units), self.n_jobs)
        rng = session.rng("start")
        names = None if X is not None else vars(self).get("feature_names_in_")
        names = None if names is None else tuple(names)
        setup = setup_of(self, self._domain(d, server), d, per_client, server, rng, names)
        # Where rows of one array stand for clients, nobody is there to add noise.
        setup = replace(setup, clients_add=X is None and self.n_honest is not None)
        state = first_message(setup, session)
        state, self.communication_ = run_rounds(state, server_update, session, engine, progress)
        self.n_rounds_ = len(self.communication_)
        self.radius_, self.messages_ = state.ground.radius, state.status
        if state.choice is not None:
            self.n_clusters_criterion_ = state.choice.criterion
            self.messages_ = self.messages_ or state.choice.told()
        self.subspace_ = state.subspace
        self.server_points_ = self.server_weights_ = self.gain_ = None
        if state.proxy is not None:
            self.server_points_ = state.proxy * state.unit + state.ground.center
            self.server_weights_ = state.weights
        if state.gain is not None:  # in the order of the centers
            self.gain_ = state.gain[np.argsort(-np.asarray(state.counts), kind="stable")]
        self._set_centers(state.centers, state.counts)
        keep_errors(self, state, session.budget_for)

    def _unit(self, grouped: bool) -> str:
        return "group" if grouped and self.privacy_unit != "row" else "row"

    def privacy_plan(
        self, n_features: int, *, unit: str = "row", X_server: ArrayLike | None = None
    ) -> PrivacyPlan:
        """Return what a fit would release and spend, before any data are seen.

        Parameters
        ----------
        n_features : int
            Number of features, public.
        unit : {"row", "group"}, default="row"
            "group" for clients as the unit. It must not contradict `privacy_unit`.
        X_server : array-like of shape (m, n_features), optional
            Server points; the rounds with them differ from those without.

        Returns
        -------
        plan : PrivacyPlan
            Prints as a table; ``plan.to_frame()`` gives a DataFrame.
        """
        check_choice("unit", unit, ("row", "group"))
        n_features = check_integer(n_features, "n_features", low=1, high=MOST_FEATURES)
        names = public_columns(n_features, X_server, ()).names
        return self._make_plan(n_features, unit, server=public_points(X_server, names))

    def _domain(self, n_features: int, server: np.ndarray | None = None) -> Any:
        domain = super()._domain(n_features)
        return public_ball(server) if domain is None and server is not None else domain

    def _check_parameters(self, n_features: int, server: np.ndarray | None = None) -> None:
        super()._check_parameters(n_features)
        check_parameters(self, n_features, server)

    def _relation(self, unit: str) -> str:
        # A client that adds noise takes part whether it has rows or not: its rows come and go.
        has_honest = self.n_honest is not None and unit == "group"
        return self.relation + " the rows of" * has_honest

    def _make_plan(self, n_features: int, unit: str, server: Any = None) -> PrivacyPlan:
        target = self._check_shared()
        self._check_parameters(n_features, server)
        domain = self._domain(n_features, server)
        setup = setup_of(self, domain, n_features, unit == "group", server)
        return plan_of(self, target, unit, setup.rounds)


def elbow(
    model: FederatedDPKMeans, *, most: int = 15, n_init: int = 10, random_state: Any = 0
) -> tuple[int, np.ndarray]:
    """Find the number of clusters at the elbow of the weighted cost of the server's points.

    Post-processing of a fit: fit once with a generous `n_clusters` (20, say), read off the number,
    and fit again with it.

    Parameters
    ----------
    model : FederatedDPKMeans
        Fitted with `X_server`.
    most : int, default=15
        Largest number to try.
    n_init : int, default=10
        Number of starts of each clustering.
    random_state : int, RandomState instance or None, default=0
        Seed of the starts; nothing here needs to be secret.

    Returns
    -------
    n_clusters : int
        The number at which the logarithm of the cost is farthest below the line between its ends.
    costs : ndarray of shape (most,)
        Weighted costs of 1, ..., `most` clusters, relative to the first.

    Raises
    ------
    ValueError, TypeError
        For invalid arguments, or if no server point of the model has any weight.

    Notes
    -----
    Appendix H.3 of the paper. Server points far from all clients can form a cluster of their own,
    so the elbow may be one too high.
    """
    most = check_integer(most, "most", low=3, high=MOST_CLUSTERS)
    n_init = check_integer(n_init, "n_init", low=1, high=100)
    random_state = check_sklearn_seed(random_state)
    points, weights = (getattr(model, f"server_{name}_", None) for name in ("points", "weights"))
    if points is None or weights is None:
        raise ValueError("model must be fitted with X_server, and not from a public start.")
    if model.subspace_ is not None:
        points = points @ model.subspace_.T
    keep = weights > 0
    points, weights = points[keep], weights[keep]
    most = min(most, len(points))
    if most < 3:
        raise ValueError("model: too few server points have any weight for an elbow.")
    costs = np.array(
        [
            KMeans(k, n_init=n_init, random_state=random_state)
            .fit(points, sample_weight=weights)
            .inertia_
            for k in range(1, most + 1)
        ]
    )
    costs = np.maximum(costs, 1e-12 * costs[0] + 1e-300)
    # Farthest below the chord: the largest second difference is often where k-means had bad luck.
    falls = np.log(costs)
    below = np.linspace(falls[0], falls[-1], most) - falls
    return int(np.argmax(below)) + 1, costs / costs[0]
