"""What all steps of one run of the k-means engine share, in one argument.

What a step may do shows in what it takes. :class:`Facts` are public: whoever takes them computes
with what has been released. A :class:`Run` also has rows to be asked and a session that releases
their answers. What a release may spend is named by an entry of the session's plan; the steps know
the entry's plain name, and the run adds its prefix.

What is known grows in three steps: of a run, what is asked for; of a :class:`Context`, also how
many rows there are and how far they reach (:class:`SizedFacts`); of a
:class:`.lloyd_state.LloydContext`, also what Lloyd's iterations start from.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaincinv, ndtri

from ..._privacy._sealed import Sealed, SealedCells
from ..._privacy._session import PrivacySession
from ..._queries.handles import GridRows
from ..._rows.rows import GridGeometry
from ..shared.centering import Size, noise_sd
from .tuning import TUNING, Tuning


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is asked for, and the public geometry of the rows."""

    rows: GridGeometry
    n_clusters: int
    tuning: Tuning = TUNING


@dataclass(frozen=True, kw_only=True)
class SizedFacts(Facts):
    """The same, with the released size and radius of the rows."""

    size: Size  # released number of units, and what it means at this budget
    # released distance from the origin that nearly all rows are within, in grid steps
    radius: float
    moves: bool = True  # whether clusters may be merged and split
    reserve: float = 0.0  # rho of Lloyd's entries that later steps of the fit are to have

    @property
    def coarse(self) -> bool:
        """Whether coarser choices pay, see `coarse_pays`."""
        return coarse_pays(self, self.size)

    @property
    def noise_of_center(self) -> float:
        """The noise of a center that has all of the budget, in radii of the data."""
        return math.sqrt(self.rows.n_features) * self.n_clusters / self.size.signal

    @property
    def lean(self) -> float:
        """One, and less where the noise of Lloyd's iterations rules."""
        return min(1.0, self.tuning.lean_noise / self.noise_of_center)


@dataclass(frozen=True, kw_only=True)
class Run(Facts):
    """Who can ask, and who pays."""

    rows: GridRows  # answers are sealed until the session has added noise
    session: PrivacySession
    prefix: str = ""  # begins the name of each plan entry, where a plan holds several runs
    # called with the name of each Lloyd iteration when it is done
    callback: Callable[[str], object] | None = None

    def name(self, entry: str) -> str:
        """The full name of a plan entry."""
        return self.prefix + entry

    def pays(self, entry: str) -> bool:
        """Whether the plan has an entry for it."""
        return self.name(entry) in self.session.plan

    def left(self, entry: str) -> float:
        """What an entry may still spend, in rho."""
        return self.session.remaining(self.name(entry))

    def released(self, entry: str, answer: Sealed, rho: float) -> np.ndarray:
        """An answer with noise, in lengths."""
        return self.session.release(self.name(entry), answer, rho=rho)

    def released_cells(
        self, entry: str, answer: SealedCells, threshold: float, rho: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of cells above a threshold, in units, and their noisy counts."""
        return self.session.release_cells(self.name(entry), answer, threshold=threshold, rho=rho)


@dataclass(frozen=True, kw_only=True)
class Context(Run, SizedFacts):
    """A run that knows the released size and radius of its rows."""


def coarse_pays(facts: Facts, size: Size) -> bool:
    """Whether coarser choices pay: in small data, but for several clusters in a plane or so.

    Up to 3 features cells are fine enough to show a cluster each, in small data too
    (`doc/development/kmeans_engine.md`, "Small data"). Next to no budget shows none, and then finer
    choices follow the noise.
    """
    few = facts.n_clusters == 1 or size.signal < facts.tuning.useless_signal
    return size.small and (facts.rows.n_features > 3 or few)


def long_tail(facts: SizedFacts) -> bool:
    """Whether the last rows are farther out, in median distances, than those of a round cluster:
    their squared lengths have the law of gamma."""
    half_d = facts.rows.n_features / 2
    round_tail = gammaincinv(half_d, max(facts.tuning.inside)) / gammaincinv(half_d, 0.5)
    return facts.size.tail**2 > round_tail


def lost_in_noise(facts: SizedFacts, budget: float) -> bool:
    """Whether one center is a better answer than several, with `budget` for Lloyd's iterations.

    Noise moves a center by d (sd k / n)^2 squared radii of the data, if all of the budget goes into
    one iteration. It is no pure loss: of k centers that lie anywhere one is nearer to a row than
    their middle, the more so, the fewer features there are.
    """
    k, d, tuning = facts.n_clusters, facts.rows.n_features, facts.tuning
    loss = d * (k * noise_sd(budget) / facts.size.n) ** 2
    gain = tuning.spread_gain * k * _nearest_of(k) ** 2 / d
    return k > 1 and loss > tuning.one_center_noise + gain


def _nearest_of(k: int) -> float:
    """About the expected largest of k standard normal numbers (Blom 1958).

    >>> round(_nearest_of(10), 2)
    1.55
    """
    return float(ndtri((k - 0.375) / (k + 0.25)))


def only_one(context: Context) -> Context:
    """The context of a single center: few iterations, as no row changes sides."""
    return replace(_with_few_iterations(context), n_clusters=1)


def _with_few_iterations(context: Context) -> Context:
    few = context.tuning.few_iterations
    return replace(context, tuning=replace(context.tuning, most_iterations=few))


def only_last(context: Context) -> Context:
    """The context of centers next to which nearly all of their rows are: few iterations."""
    return without_moves(_with_few_iterations(context))


def without_moves(context: Context) -> Context:
    """The context of given centers: no spread is asked for, which merging and splitting need."""
    return replace(context, moves=False)
