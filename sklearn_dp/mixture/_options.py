"""Options of the ways to isolate components that few fits need."""

from dataclasses import dataclass
from typing import Any

from .._aggregate.tuples.stage import AGGREGATORS
from .._base import check_real
from .._guarantee import check_no_ledger
from .._privacy._checks import check_choice
from .._validation import check_auto, check_options


@dataclass(frozen=True)
class KTupleOptions:
    """Options of ``DPGaussianMixture(method="k_tuples")``.

    Parameters
    ----------
    n_tuples : int or "auto", default="auto"
        Number of blocks; public. By default the number that the aggregator needs at this budget, or
        none (only the coreset) if a friendly core needs more than 1000, at an epsilon below about
        4. The coreset is also used with fewer than 20 rows for each block and component.
    aggregator : {"auto", "friendly_core", "k_averages", "noisy_centers"}, default="auto"
        See :class:`~sklearn_dp.DPKTupleKMeans`.
    inner : estimator, optional
        Any clusterer with ``labels_`` or ``predict`` after `fit`, a function of its rows and its
        ``random_state`` alone. By default k-means, on the first principal components if there are
        more features than components.

    Examples
    --------
    >>> from sklearn.cluster import AgglomerativeClustering
    >>> from sklearn_dp import DPGaussianMixture
    >>> from sklearn_dp.mixture import KTupleOptions
    >>> options = KTupleOptions(n_tuples=200, inner=AgglomerativeClustering(3))
    >>> DPGaussianMixture(3, method="k_tuples", options=options, epsilon=8.0).method
    'k_tuples'
    """

    n_tuples: int | str = "auto"
    aggregator: str = "auto"
    inner: Any = None

    def check(self) -> None:
        """Refuse bad values by name."""
        check_choice("aggregator", self.aggregator, ("auto", *AGGREGATORS))
        check_auto(self.n_tuples, "n_tuples", low=2, high=2**20)
        if self.inner is not None and not hasattr(self.inner, "fit"):
            raise TypeError("inner must be an estimator.")
        check_no_ledger(self.inner, "inner")


@dataclass(frozen=True)
class PartitionOptions:
    """Options of ``DPGaussianMixture(method="partition")``.

    Parameters
    ----------
    balls : {"joint", "points"}, default="joint"
        "joint" chooses balls around released candidates. "points" is the published method, with
        balls around data points; it compares all pairs of a sample and needs budgets of several
        units of epsilon. It did not outperform "joint" in our benchmarks: of three components in
        two dimensions, 12 standard deviations apart, 2000 rows in all, "joint" finds all parts in 5
        fits of 5 at an epsilon of 4 and of 16, and "points" in none; at 64 it is 5 against 4.
    separation : float, default=1.5
        How much larger than a ball the empty region around it must be; above 1. The paper has 5,
        which only very distant components satisfy.
    min_weight : float, optional
        Smallest weight of a component; 1 / (2 n_components) by default. Half as many rows must be
        on each side of a cut.

    Examples
    --------
    >>> from sklearn_dp import DPGaussianMixture
    >>> from sklearn_dp.mixture import PartitionOptions
    >>> options = PartitionOptions(separation=2.0)
    >>> DPGaussianMixture(3, method="partition", options=options).options.balls
    'joint'
    """

    balls: str = "joint"
    separation: float = 1.5
    min_weight: float | None = None

    def check(self) -> None:
        """Refuse bad values by name."""
        check_choice("balls", self.balls, ("joint", "points"))
        check_real(self.separation, "separation", low=1.0, high=1e3)
        if self.min_weight is not None:
            check_real(self.min_weight, "min_weight", high=1.0)


_OPTIONS: dict[str, Any] = {"k_tuples": KTupleOptions, "partition": PartitionOptions}


def options_of(method: str, options: object) -> Any:
    """The options of a method, with its defaults for None; None where it has none."""
    check_options(_OPTIONS, "method", method, options)
    return _OPTIONS[method]() if options is None and method in _OPTIONS else options
