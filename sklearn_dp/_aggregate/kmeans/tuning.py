"""Every tuned number of the k-means engine, with its meaning, its unit and its origin.

What a proof needs is not here but at the line of the proof: no number of this page can change a
guarantee, only the accuracy. `benchmarks/ablation.py` halves and doubles each of them; a name
below is the name of its row in `doc/benchmarks/ablation.md`. What the numbers rest on is told in
`doc/development/kmeans_engine.md`; "Numbers" there lists those that no cell of the table reads, or
that change no fit of it.

Units: "share" is a part of rho; "sd" is the standard deviation of the noise of the release at
hand; "signal" is the number of rows times mu, in sd of a count that took the whole budget.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """The numbers that the k-means engine was tuned with; see the comments at each of them."""

    # -- shares of rho: what each release gets, and the most that it may take -------------------
    bound_share: float = 0.05  # of all, for a bound of the data where none is public
    center_share: float = 0.05  # of the rest, for the sum and the number of rows
    radius_share: float = 0.02  # for the histogram of lengths
    radius_share_flat: float = 0.05  # the same up to 3 features: it must not cut off a cluster
    moment_share: float = 0.06  # for the second moment, which rotates the features ...
    moment_cap: float = 0.08  # ... and the most that it may take in small data
    wide_features: int = 10  # features above which it chooses a subspace ...
    wide_moment_share: float = 0.10  # ... and its share there
    wide_moment_cap: float = 0.15
    cells_share: float = 0.20  # for the counts of the cell tree ...
    cells_cap: float = 0.34  # ... the most, with a look at far cells
    flat_cells: float = 1.5  # factor of the share where there are at most 3 axes
    far_cells: float = 0.15  # part of the cells' share, in addition, for a look at far cells
    means_share: float = 0.10  # for the means of the leaves
    quality_share: float = 0.02  # for how far the rows are from the answer, at the very end
    # Where the noise of Lloyd's iterations rules the loss, the releases before them get less.
    lean_noise: float = 0.05  # noise of an iteration, in radii, from which they do
    lean_share: float = 0.5  # the part of their shares that they get at twice that noise

    # -- where coarser choices pay --------------------------------------------------------------
    useless_signal: float = 30.0  # signal below which an answer is called mostly noise
    one_center_noise: float = 0.7  # squared noise of a center, in radii: above, one is better ...
    spread_gain: float = 2.5  # ... and what k centers gain wherever they are: for each of them
    alone_iterations: int = 3  # for one center, or where a projection has found all of them ...
    alone_share: float = 0.25  # ... and what each but the last gets
    shrink: float = 0.5  # part of the predicted noise of a center by which it is shrunk ...
    shrink_middle: float = 1.5  # the same of their mean, for each part that they do not keep
    shrink_spread: float = 0.25  # ... less this part of the spread, where cells show the clusters
    spreads_differ: float = 0.5  # part by which the spread of a cluster differs from the mean
    useless_noise: float = 0.3  # part of a typical cluster's spread that may be noise
    useless_loss: float = 0.25  # part of the final sum of squares that may be noise of the centers
    doubtful_loss: float = 0.1  # the same, where the clusters are not shown to explain anything
    explained_sd: float = 1.5  # sd above which the explained part is shown
    noisy_explained_sd: float = 5.0  # the same, where the signal is below `useless_signal`
    unexplained_sd: float = 0.15  # sd of the explained part up to which its absence is shown
    useless_loss_alike: float = 0.45  # useless_loss, where no clusters are shown to be there
    faint_signal: float = 100.0  # signal below which ...
    partial_loss: float = 0.075  # ... such a loss ...
    partial: float = 0.55  # ... and so small an explained part, less its sd, are doubtful
    uneven: float = 0.17  # part of the squares in clusters wider than most, beside empty ones
    idle: float = 0.35  # part of the clusters without rows, where much is left to explain
    rowless: float = 0.5  # part of the clusters without rows that shows none: word counts
    few_signal: float = 50.0  # signal below which two released points a cluster are asked for
    points_noise: float = 0.16  # noise of a center, in radii, above which points are noise there
    far_sd: float = 2.33  # sd that the number of rows far from every center has to exceed ...
    far_sure: float = 3.0  # ... the same where all clusters hold ...
    far_light: float = 6.0  # ... so many sd of their counts
    far_cost: float = 0.5  # part of what all rows are likely to cost that so many of them would
    far_dear: float = 0.25  # part of the cost of the others that they must have
    far_few: float = 0.25  # part of all rows that they are at the most
    far_least: float = 6.0  # least distance of far rows, in root mean squares of a cluster

    # -- radius of the data ---------------------------------------------------------------------
    radius_bins: int = 28  # bins of the histogram of lengths, each 2**(1/4) wider than the last
    small_radius_bins: int = 8  # the same in small data
    radius_noise: float = 0.25  # part of the rows that the noise of all bins may be
    radius_sd: float = 1.5  # sd by which a sum of bins must exceed its target
    outside: float = 0.01  # part of the rows that the radius leaves out
    flat_outside: float = 0.0002  # the same up to 3 features
    small_outside: float = 0.2  # the same in small data above 3 features ...
    small_flat_outside: float = 0.05  # ... and up to 3: a twentieth cuts off no typical cluster

    tail_part: float = 0.002  # part of the rows that is beyond the tail
    long_tail: float = 3.0  # tail, in median distances, from which far cells are looked at

    # -- principal axes -------------------------------------------------------------------------
    axes_edge: float = 1.9  # noise of an eigenvalue that does not count, in sd sqrt(d / 2)
    most_axes: int = 8
    box_reach: float = 3.0  # half width of the searched box, in standard deviations of the rows
    small_box_reach: float = 2.0  # the same in small data of 4 to 10 features

    # -- projection of many features ------------------------------------------------------------
    projection_features: int = 32  # of a projection, if the rows have four times as many
    projection_uneven: float = 0.16  # times q / (k - 1): log of the mean of the widths of its axes
    # over their geometric mean, from which clusters are looked for in it
    projection_reach: float = 1.3  # clip of its rows in the moment, in typical lengths
    projection_moment: float = 0.4  # part of the share of a second moment, for that of its rows
    projection_whitening: float = 0.7  # power to which its axes are drawn to the same width
    projection_iterations: int = 16  # of Lloyd there
    projection_search: float = 0.67  # budget of Lloyd there, over that of Lloyd in all features

    # -- cell tree ------------------------------------------------------------------------------
    depth_signal: float = 1.87  # signal that a cell of the full depth has left
    flat_depth: float = 1.3  # the depth is this times larger up to 3 axes
    sparse_depth: float = 0.6  # part of the full depth of the one level from 6 axes on ...
    dense_depth: float = 0.75  # ... and where clusters hold many rows
    dense_rows: float = 120.0  # rows of a cluster that are many, in sd
    first_depth: float = 0.55  # part of the full depth of the first level, below 6 axes
    flat_levels: int = 4  # levels of the tree up to 3 axes
    levels: int = 3  # the same with 4 or 5
    least_threshold: float = 2.0  # sd above which a cell is believed, at the least
    threshold_base: float = 0.2  # sd; the threshold is base + slope sqrt(2 log(number of cells))
    threshold_slope: float = 0.92
    middling_threshold: float = 0.8  # factor of the threshold where the signal is 150 to 1000
    early_threshold: float = 0.6  # factor in the first of several levels: later ones look again
    leaf_keep_sd: float = 2.5  # sd of its mean below which a leaf measured again is dropped
    split_cells: float = 2.0  # thresholds above which a cell is divided further
    far_depth: float = 0.6  # part of the first depth that far cells have, up to 3 axes
    nearest_shell: float = 3.0  # first shell of far cells, in standard deviations of an axis
    shells: int = 8  # along each half of an axis; the last one has no end
    shell_ratio: float = 1.5  # each shell begins this times farther out than the last
    beyond_shell: int = 1  # from this shell on, rows are in no cell of the tree
    far_cell_excess: float = 0.5  # part of what leaves in it hold that a far cell must have besides
    leaf_reach: float = 0.7  # clip radius of a leaf's residuals, in half diagonals of its box
    guesses: int = 20  # public guesses of where rows may be, for each cluster
    least_guesses: int = 200
    most_guesses: int = 2**14  # beyond it, two for each cluster
    guess_weight: float = 0.3  # weight of all the guesses together, in sd
    small_guess_weight: float = 3.0  # the same in small data above 3 features
    least_guess_weight: float = 1e-3  # part of that weight that stays where leaves hold all rows

    # -- start ----------------------------------------------------------------------------------
    starts: int = 6  # solutions of the coreset that are compared on the rows, at most ...
    starts_apart: float = 0.002  # ... that differ by this part of the cost
    starts_worse: float = 0.03  # ... and cost at most this part more than the best
    starts_share: float = 0.03  # of what the last steps are worth, for comparing them
    starts_rows: float = 100.0  # rows of a cluster, in sd, from which that is done ...
    starts_noise: float = 0.02  # ... if the noise is at most this part of the cost
    start_surplus: float = 1.5  # centers of the start for each cluster, above 3 axes

    # -- Lloyd's iterations ---------------------------------------------------------------------
    iteration_share: float = 0.12  # of the budget of all iterations, for each but the last
    small_iteration_share: float = 0.2
    most_iterations: int = 8
    small_most_iterations: int = 4
    distance_share: float = 0.04  # of an iteration, for the histogram of distances
    spread_share: float = 0.10  # of an iteration, for the spread of the clusters
    count_share: float = 0.10  # of what is left, for the counts
    precise_centers: float = 0.004  # noise share below which moves matter more than centers ...
    moves_spread_share: float = 0.3  # ... and then the same shares are these
    moves_count_share: float = 0.7
    spread_iterations: int = 5  # the first iterations ask for the spread of the clusters
    spread_cap: float = 1.7  # cap of a distance in the spread, in clip radii
    clip_bins: int = 24  # bins of the histogram of distances, each 2**(1/3) wider
    small_clip_bins: int = 12  # the same in small data above 3 features
    clip_top: float = 1.5  # largest edge of these bins, in radii of the data
    clip_noise: float = 0.35  # part of the rows that the noise of all bins may be
    clip_sd: float = 2.0  # sd by which a sum of bins must exceed its target
    clip_default: float = 0.6  # clip radius where noise hides it, in radii of the data ...
    width_default: float = 1.0  # ... and in widths of a cluster, where small data show them ...
    least_width: float = 0.7  # ... and the least of it there
    inside_noise: tuple = (0.002, 0.02, 0.15)  # noise of an iteration over the rows, in radii ...
    inside: tuple = (0.999, 0.97, 0.40)  # ... and the part of the rows that is not clipped
    quality_reach: float = 1.5  # the cap, in distances that no more rows than noise are beyond
    one_center_reach: float = 1.25  # the cap about one center, in radii of the data
    least_gain: float = 0.5  # the least that a clipped mean is taken to move with its rows
    scale_prior: float = 4.0  # sd of a cell: weight of the common width in that of a cluster
    scale_dead: float = 1.4  # widths of clusters this factor apart count as equal
    most_scale: float = 8.0  # largest ratio of a cluster's width to the common one
    count_memory: float = 0.1  # part of a count that may have changed since the last iteration
    spread_memory: float = 0.2  # the same of a spread
    certain_count_sd: float = 2.0  # sd above which a count is sure
    movement: float = 0.7  # part of its noise above which a movement is drift
    own_movement: float = 16.0  # features from which each cluster's movement counts alone
    overshoot: float = 1.3  # the way of a center while all still drift
    radius_growth: float = 0.7  # movement, in clip radii, from which a radius is doubled ...
    radius_growth_sd: float = 2.0  # ... beyond the noise, in its standard deviations
    drift_sd: float = 1.5  # sd of the mean movement above which the centers drift
    least_drift: float = 0.0005  # mean squared movement, in squared clip radii, that is none

    # -- merging and splitting ------------------------------------------------------------------
    first_evidence: float = 3.0  # sd by which a split must gain in the first iteration
    small_evidence: float = 2.5  # the same in small data above 3 features, later
    evidence: float = 2.0  # the same otherwise, later
    least_evidence: float = 0.5  # the same, where two centers seem to share a cluster
    shared_cluster: float = 0.6  # cost of a merger, in halves of a cluster, below which they do
    noisy: float = 0.2  # noise share above which the cheapest merger says nothing
    round_gain: float = 0.5  # part of what halving a round cluster saves that a merger may cost
    free_moves: float = 0.5  # such moves in one iteration, with all others, for each cluster
    settling: int = 2  # iterations in which what was split is not merged again
    blocked: float = 0.05  # part of the cost from which a split that gains is waited for
    merge_gain: float = 0.8  # part of the gain of a split that a merger may cost
    merge_sure: float = 4.0  # sd above which a count needs no lower bound
    merge_doubt: float = 2.0  # sd by which a count that cells helped with is lowered below that
    merge_floor: float = 0.0005  # least weight of a cluster in a merger, in sd
    unseen_floor: float = 0.0003  # the same, where neither cells nor counts show a row
    reduce_unseen: float = 0.003  # factor of the least weight there, when centers are reduced
    reduce_sure: float = 4.0  # sd above which a count is not averaged with the cells'
    moves: float = 0.25  # moves in one iteration, for each cluster
    reduce_floor: float = 0.3  # least weight of a center when they are reduced, in sd

    # -- choosing the number of clusters (a given number reads none of these) ---------------
    choice_features: int = 5  # features up to which the leaves of the coreset tell clusters apart
    choice_reference: int = 20  # clusters that releases before the choice are made for, at most
    choice_far: float = 0.25  # part by which another number differs to be another answer
    choice_margin: float = 0.02  # by which a gap or a silhouette has to be better
    gap_points: int = 256  # that the leaves are brought down to
    gap_points_each: int = 2  # points that a cluster has at least
    gap_references: int = 3  # uniform data sets
    gap_iterations: int = 4  # of Lloyd, from the clusters of the tree
    gap_bar: float = 0.5  # times 2 / (q k): what the gap of k clusters on q axes has to rise by ...
    gap_later_bar: float = 1.5  # ... and that of a peak after a higher one
    gap_risen: float = 0.2  # part of what was lost since the highest peak that a later one regains
    choice_lost: float = 0.25  # part of the rows in no leaf that are a width beside one
    choice_bar: float = 0.5  # sd of a count that a cluster on two axes must gain in likelihood
    choice_clear_points: int = 12  # leaves below which the number of clusters is not clear
    surplus_share: float = 0.6  # of the budget of Lloyd's iterations: the most for surplus centers
    small_surplus_share: float = 0.45  # the same in small data
    surplus_iterations: int = 4
    small_surplus_iterations: int = 1  # in small data more of them follow the noise
    surplus_centers: float = 1.6  # centers for each of the largest number of clusters
    surplus_starts: int = 10  # starts of the k-means on the coreset: its iterations mend the rest
    surplus_counts: float = 0.15  # of what is left of an iteration, for the counts
    surplus_keep_sd: float = 3.0  # sd of its count that a center needs
    small_surplus_keep_sd: float = 2.5  # the same in small data
    surplus_noise_sd: float = 0.5  # sd that counts and distances are lowered by in a merger's cost
    surplus_penalty: float = 2.5  # of a cluster, times that of the usual criterion


TUNING = Tuning()
"""The engine's defaults."""
