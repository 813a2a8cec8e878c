"""The state that all steps of one run of the k-means engine share, in one argument.

:class:`Facts` are public: whoever takes them computes with what has been released. A :class:`Run`
also has rows to be asked and a session; entries of the plan are named without the run's prefix. A
:class:`Context` also knows :class:`SizedFacts`: how many rows there are and how far they reach.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..._privacy._session import PrivacySession, release_cells
from ..._privacy._units import Sealed, SealedCells
from ..._queries.grids import GridRows
from ..._rows.rows import GridGeometry
from ..._status import Message, Status
from ..shared.centering import Size, noise_sd


# What a proof needs is not here but at the line of the proof: no number of this page can change a
# guarantee, only the accuracy. `benchmarks/ablation.py` halves and doubles each of them; a name
# below is the name of its row in `doc/benchmarks/ablation.md`. What the numbers rest on is told in
# `doc/development/kmeans_engine.md`; "Numbers" there lists those that no cell of the table reads,
# or that change no fit of it.
#
# Units: "share" is a part of rho; "sd" is the standard deviation of the noise of the release at
# hand; "signal" is the number of rows times mu, in sd of a count that took the whole budget.
@dataclass(frozen=True)
class Tuning:
    """The numbers that the k-means engine was tuned with; see the comments at each of them."""

    # -- shares of rho: what each release gets, and the most that it may take -------------------
    center_share: float = 0.05  # for a bound, where none is public; for the sum and number of rows
    radius_share: float = 0.02  # for the histogram of lengths; up to 3 features as the center
    moment_share: float = 0.10  # for the second moment, which rotates the features
    wide_features: int = 10  # features above which it chooses a subspace
    second_moment: float = 0.5  # part of that share, in addition, in small data or for a projection
    cells_share: float = 0.20  # for the counts of the cell tree
    flat_cells: float = 1.5  # factor of the share where there are at most 3 axes
    far_cells: float = 0.15  # part of the cells' share, in addition, for a look at far cells
    means_share: float = 0.10  # for the means of the leaves
    quality_share: float = 0.02  # for how far the rows are from the answer, at the very end
    # Where the noise of Lloyd's iterations rules the loss, the releases before them get less.
    lean_noise: float = 0.05  # noise of a center, in radii, that leaves them their whole shares

    # -- where coarser choices pay --------------------------------------------------------------
    useless_signal: float = 30.0  # signal below which an answer is called mostly noise
    one_center_noise: float = 0.7  # squared noise of a center, in radii: above, one is better ...
    spread_gain: float = 2.5  # ... and what k centers gain wherever they are: for each of them
    shrink: float = 0.5  # part of the predicted noise of a center by which it is shrunk ...
    shrink_spread: float = 0.25  # ... less this part of the spread, where cells show the clusters
    useless_noise: float = 0.3  # part of a typical cluster's spread that may be noise
    useless_loss: float = 0.25  # part of the final sum of squares that may be noise of the centers
    doubtful_loss: float = 0.1  # the same, where the clusters are not shown to explain anything
    unexplained_sd: float = 0.15  # sd of the explained part up to which its absence is shown
    useless_loss_alike: float = 0.45  # useless_loss, where no clusters are shown to be there
    faint_signal: float = 100.0  # signal below which ...
    partial: float = 0.55  # ... and so small an explained part, less its sd, are doubtful
    uneven: float = 0.13  # part of the squares in clusters wider than most, beside empty ones
    rowless: float = 0.4  # part of the clusters without rows that shows none, or some missed
    far_sure: float = 3.0  # sd of the number of far rows, where all clusters hold many
    points_noise: float = 0.16  # noise of a center, in radii, above which points are noise there
    far_part: float = 0.25  # few far rows: at most this part of all, that cost at least as much
    far_least: float = 6.0  # least distance of far rows, in root mean squares of a cluster

    # -- radius of the data ---------------------------------------------------------------------
    radius_bins: int = 28  # bins of the histogram of lengths, each 2**(1/4) wider than the last
    small_radius_bins: int = 10  # outermost ones that the radius of small data is read from
    radius_sd: float = 1.5  # sd by which a sum of bins must exceed its target
    outside: float = 0.01  # part of the rows that the radius leaves out; up to 3 features, of few
    small_outside: float = 0.2  # the same in small data above 3 features

    # -- principal axes -------------------------------------------------------------------------
    axes_edge: float = 1.9  # noise of an eigenvalue that does not count, in sd sqrt(d / 2)
    most_axes: int = 8
    # Half width of the searched box, in standard deviations of the rows; half of it in small data
    # of 4 to 10 features. A longer tail, in median distances, is looked at with far cells in fewer
    # or more features, and there one that is longer than that of a round cluster ...
    box_reach: float = 3.0
    far_rows: float = 120.0  # ... from so many rows of a cluster, in sd, where no axes are measured

    # -- projection of many features ------------------------------------------------------------
    projection_features: int = 32  # of a projection, if the rows have four times as many
    projection_uneven: float = 0.16  # times q / (k - 1): log of the mean of the widths of its axes
    # over their geometric mean, from which clusters are looked for in it
    projection_reach: float = 1.3  # clip of its rows in the moment, in typical lengths
    projection_whitening: float = 0.7  # power to which its axes are drawn to the same width

    # -- cell tree ------------------------------------------------------------------------------
    depth_signal: float = 1.87  # signal that a cell of the full depth has left
    flat_depth: float = 1.3  # the depth is this times larger up to 3 axes
    sparse_depth: float = 0.6  # part of the full depth of the one level from 6 axes on
    first_depth: float = 0.55  # the same of the first of several; of that, of far cells
    levels: int = 4  # of the tree up to 3 axes, at most; one less with 4 or 5
    level_signal: float = 7.5  # of a cluster, for each level up to 3 axes
    threshold: float = 0.92  # times sqrt(2 log(cells)): sd above which a cell is believed
    early_threshold: float = 0.6  # factor in the first of several levels: later ones look again
    split_cells: float = 2.0  # thresholds above which a cell is divided further
    shells: int = 8  # along each half of an axis; the last one has no end
    shell_ratio: float = 1.5  # each shell begins this times farther out than the last
    leaf_reach: float = 0.7  # clip radius of a leaf's residuals, in half diagonals of its box
    guesses: int = 400  # public guesses of where rows may be; at least two for each cluster

    # -- one axis that rules --------------------------------------------------------------------
    ruled: float = 0.1  # of the squares: what all other half sides, or measured axes, have at most
    ruling_share: float = 0.75  # of what cells may take, for ranks of an axis that may rule

    # -- start ----------------------------------------------------------------------------------
    start_surplus: float = 1.5  # centers for each cluster, above 3 axes or to choose their number

    # -- Lloyd's iterations ---------------------------------------------------------------------
    most_iterations: int = 8  # each but the last has the same share of the budget, the last two
    few_iterations: int = 4  # in small data, of one center, of surplus centers, with spreads
    distance_share: float = 0.04  # of an iteration, for the histogram of distances
    count_share: float = 0.10  # of what is left, for the spread of the clusters, then the counts
    precise_centers: float = 0.004  # noise share below which moves matter more than centers ...
    moves_share: float = 0.4  # ... and then the same share is this
    spread_cap: float = 1.5  # cap in sums of squares, in clip radii or what few rows are beyond
    # Bins of the histogram of distances, each 2**(1/3) wider; half in small data above 3 features.
    clip_bins: int = 24
    clip_top: float = 1.5  # largest edge of these bins, in radii of the data
    bins_noise: float = 0.35  # part of the rows that the noise of all bins of a histogram may be
    clip_default: float = 0.6  # clip radius where noise hides it, in radii of the data
    inside_noise: tuple = (0.002, 0.02, 0.15)  # noise of an iteration over the rows, in radii ...
    inside: tuple = (0.999, 0.97, 0.40)  # ... and the part of the rows that is not clipped
    one_center_reach: float = 1.25  # the cap about one center, in radii of the data
    scale_dead: float = 1.4  # widths of clusters this factor apart count as equal
    memory: float = 0.1  # part of a count or spread that may have changed since the last iteration
    certain_count_sd: float = 2.0  # sd above which a count, a sum of bins or a drift is no noise
    movement: float = 0.7  # part of its noise above which a movement is drift
    overshoot: float = 1.3  # the way of a center while all still drift

    # -- merging and splitting ------------------------------------------------------------------
    evidence: float = 2.5  # sd by which a split must gain, and that keep a leaf or a surplus center
    noisy: float = 0.2  # noise share above which the cheapest merger says nothing
    least_count: float = 0.0005  # sd: what a center in empty space counts in a merger
    reduce_floor: float = 0.3  # least weight of a center when they are reduced, in sd

    # -- choosing the number of clusters (a given number reads none of these) ---------------
    choice_features: int = 5  # features up to which the leaves of the coreset tell clusters apart
    choice_reference: int = 20  # clusters that releases before the choice are made for, at most
    choice_far: float = 0.25  # part by which another number, or a later peak, is another answer
    choice_margin: float = 0.02  # by which a gap or a silhouette has to be better
    gap_references: int = 3  # uniform data sets
    gap_later_bar: float = 1.5  # noise of a gap by which a peak after a higher one has to rise
    choice_lost: float = 0.25  # part of the rows in no leaf that are a width beside one
    choice_noise: float = 0.5  # sd that a cluster must be worth: of a count, of a merger's cost
    choice_clear_points: int = 12  # leaves below which the number of clusters is not clear
    surplus_share: float = 0.6  # of the budget of Lloyd's iterations, for surplus centers
    surplus_penalty: float = 2.5  # of a cluster, times that of the usual criterion

    @property
    def sure_count_sd(self) -> float:
        """Standard deviations above which a count needs neither cells nor a lower bound."""
        return 2 * self.certain_count_sd


TUNING = Tuning()
"""The engine's defaults."""


# -- candidates ------------------------------------------------------------------------------------


CRITERIA = ("auto", "gap", "bic", "silhouette")
MOST_CHOICES = 200
"""The largest number of clusters that may be chosen: the criterion is computed for all below."""


@dataclass(frozen=True)
class Candidates:
    """The numbers of clusters, from `low` to `high`, that a fit may choose from; and by what."""

    low: int = 1
    high: int = 30
    criterion: str = "auto"

    @property
    def reference(self) -> int:
        """The number of clusters that everything released before the choice is made for."""
        return min(self.high, TUNING.choice_reference)

    def rule(self, n_features: int) -> str:
        """The criterion, with "auto" resolved."""
        if self.criterion != "auto":
            return self.criterion
        return "gap" if n_features <= TUNING.choice_features else "bic"


@dataclass(frozen=True)
class Choice:
    """A number of clusters, and what it was chosen by: functions of releases."""

    n_clusters: int
    # of the candidates; the larger the better
    criterion: dict[int, float] = field(default_factory=dict)
    unclear: str = ""  # why other numbers may do as well
    # centers (n_clusters, d) that the choice has found, and the variance (n_clusters,) of the noise
    # in their coordinates
    start: tuple[np.ndarray, np.ndarray] | None = field(default=None, compare=False)

    def told(self, what: str = "clusters") -> Status:
        """The status of the choice."""
        text = f"number of {what} unclear: {self.unclear}"
        return Status([Message("unclear_number", text, severity="part")] if self.unclear else [])


def nothing_seen(candidates: Candidates) -> Choice:
    """The least candidate, where the releases show no clusters at all."""
    words = "too little stands out from the noise"
    return Choice(candidates.low, {}, "" if candidates.low == candidates.high else words)


def judged(best: int, values: dict[int, float], candidates: Candidates, margin: float) -> Choice:
    """The choice of `best`, and whether it is clear: not the largest candidate, and none that
    differs by more than a quarter is as good up to the margin."""
    rivals = [
        k
        for k, value in values.items()
        if value > values[best] - margin and abs(k - best) > TUNING.choice_far * best
    ]
    unclear = ""
    if candidates.low < candidates.high == best:
        unclear = f"{best} is the largest number allowed"
    elif rivals:
        rival = max(rivals, key=lambda k: values[k])
        unclear = f"{rival} would fit about as well"
    return Choice(best, values, unclear)


# -- fit context -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The parameters of a fit, and the public geometry of the rows."""

    rows: GridGeometry
    n_clusters: int
    tuning: Tuning = TUNING


@dataclass(frozen=True, kw_only=True)
class SizedFacts(Facts):
    """Facts with the released size and radius of the rows."""

    size: Size  # released number of units, and what it means at this budget
    # released distance from the origin that nearly all rows are within, in grid steps
    radius: float
    moves: bool = True  # whether clusters may be merged and split
    reserve: float = 0.0  # rho of Lloyd's entries that later steps of the fit are to have

    @property
    def coarse(self) -> bool:
        """True if coarser choices pay, see `coarse_pays`."""
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
        """True if the plan has an entry for it."""
        return self.name(entry) in self.session.plan

    def left(self, entry: str) -> float:
        """Return the remaining budget of an entry, in rho."""
        return self.session.remaining(self.name(entry))

    def released(self, entry: str, answer: Sealed, rho: float) -> np.ndarray:
        """An answer with noise, in lengths."""
        return self.session.release(self.name(entry), answer, rho=rho)

    def released_cells(
        self, entry: str, answer: SealedCells, threshold: float, rho: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of cells above a threshold, in units, and their noisy counts."""
        return release_cells(self.session, self.name(entry), answer, threshold=threshold, rho=rho)


@dataclass(frozen=True, kw_only=True)
class Context(Run, SizedFacts):
    """A run that knows the released size and radius of its rows."""


def coarse_pays(facts: Facts, size: Size) -> bool:
    """True if coarser choices pay: in small data, but for several clusters in up to 3 features,
    where cells are fine enough, unless there is next to no budget."""
    few = facts.n_clusters == 1 or size.signal < facts.tuning.useless_signal
    return size.small and (facts.rows.n_features > 3 or few)


def lost_in_noise(facts: SizedFacts, budget: float) -> bool:
    """True if one center is a better answer than several, with `budget` for Lloyd's iterations.

    Noise moves a center by d (sd k / n)^2 squared radii, if all of the budget goes into one
    iteration. Of k centers anywhere one is nearer to a row than their middle, the more so, the
    smaller d is."""
    k, d, tuning = facts.n_clusters, facts.rows.n_features, facts.tuning
    loss = d * (k * noise_sd(budget) / facts.size.n) ** 2
    # About the expected largest of k standard normal numbers (Blom 1958).
    gain = tuning.spread_gain * k * float(ndtri((k - 0.375) / (k + 0.25))) ** 2 / d
    return k > 1 and loss > tuning.one_center_noise + gain


def with_few_iterations(context: Context, **changes: Any) -> Context:
    """The context of a single center, or where nearly all rows are next to their centers."""
    few = context.tuning.few_iterations
    return replace(context, tuning=replace(context.tuning, most_iterations=few), **changes)
