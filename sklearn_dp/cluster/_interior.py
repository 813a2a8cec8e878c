"""A private interior point of numbers, as a function."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._aggregate.one_cluster import MOST_POINTS
from .._aggregate.one_cluster.search import Search
from .._base import Bounds, LedgerLike, RandomStateLike, budget_of, check_integer
from .._costs.plan import PrivacyPlan
from .._costs.report import PrivacyReport
from .._door import check_vector, read_vector
from .._parameters import domain_of
from .._privacy._session import PrivacySession
from .._privacy._units import Units
from .._published import int_point as _int_point
from .._queries._query import TableRows
from .._queries.grids import GridRows
from .._rows.single_rows import row_guard, saturated

_SEARCH = Search(center_method="clip", replace=True)


@dataclass(frozen=True)
class IntPointResult:
    """The result of :func:`int_point`.

    Parameters
    ----------
    point : float
        The released number.
    privacy_report : PrivacyReport
        The guarantee, and every release that it covers.
    """

    point: float
    privacy_report: PrivacyReport


@row_guard
def int_point(
    values: ArrayLike,
    *,
    n_points: int,
    epsilon: float | None = 1.0,
    delta: float = 1e-6,
    rho: float | None = None,
    bounds: Bounds,
    ledger: LedgerLike | None = None,
    random_state: RandomStateLike | None = None,
) -> IntPointResult:
    """A number between the smallest and the largest of some numbers, near their median.

    A private search finds a small ball around the middle values. It is divided into pieces, whose
    ends are the candidates of an exponential mechanism. So clusters can be found only in a bounded
    domain of finite resolution.

    Parameters
    ----------
    values : array-like of shape (n,)
        Finite numbers; n is private, and may be 0.
    n_points : int
        Number of values in the middle among which the ball is searched for; public.
    epsilon : float, default=1.0
        Privacy budget of one call.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    bounds : float or pair (low, high)
        Public: values outside are clipped.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    random_state : int, RandomState instance or Generator, optional
        For tests: a seed voids the guarantee against anyone who knows it. None: system noise.

    Returns
    -------
    result : IntPointResult
        The number, and what it cost.

    Raises
    ------
    ValueError, TypeError
        For invalid parameters or values; the message quotes no values.
    BudgetExceededError
        If the remaining budget of `ledger` is too small. The values have not been read.

    Notes
    -----
    Guarantee: (epsilon, delta)-differentially private for adding or removing one number. The point
    is interior with probability at least 95% if about ``4 log(129 / 0.05) / e`` numbers are left
    out of the middle, e being the epsilon of the choice, which costs half of rho.

    References
    ----------
    Nissim, K., Stemmer, U. and Vadhan, S. (2016). Locating a small cluster privately. PODS.
    (algorithm 3, with an exponential mechanism in place of RecConcave)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp.cluster import int_point
    >>> values = np.random.default_rng(0).normal(10.0, 1.0, size=5000)
    >>> found = int_point(values, bounds=1000.0, n_points=2500, epsilon=1.0)
    >>> bool(8 < found.point < 12)
    True
    """
    check_vector(values, "values")
    target, domain = budget_of(epsilon, delta, rho), domain_of(bounds, 1)
    if domain is None:
        raise ValueError("bounds must be given.")
    n_points = check_integer(n_points, "n_points", low=1, high=MOST_POINTS)
    entries = _int_point.int_point_entries(target.to_rho(gaussian=False), 0.0, _SEARCH)
    session = PrivacySession(
        PrivacyPlan(target, entries), random_state=random_state, ledger=ledger, label="int_point"
    )
    numbers = read_vector(values, "values")
    if not np.isfinite(numbers).all():
        raise ValueError("values must be a vector of finite numbers.")
    table = TableRows.in_memory(saturated(numbers)[:, None], Units(len(numbers)))
    rows = GridRows.quantize(table, domain)
    point = _int_point.int_point(session, rows, n_points, _SEARCH)
    clipped = domain.clip_points(np.array([[point * rows.unit]]) + domain.center)
    return IntPointResult(float(clipped[0, 0]), session.report())
