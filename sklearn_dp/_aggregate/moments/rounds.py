"""Means and covariances of one or more components: whiten by what is released, clip, release again.

An :class:`Ellipsoid` is a released guess of a component. Its whitening takes the rows to where the
component should be about a standard normal, which makes a clipping radius of about sqrt(d) right
whatever the scale and the condition number; noise that is isotropic there is in proportion to the
covariance everywhere [1]_. A round of :func:`refine`

1. in one pass over the parts of the table, gives each row its weights in the components, from
   released values, whitens and clips it, and sums (:mod:`.moment_releases`);
2. releases counts, sums and second moments of all rows;
3. undoes what clipping did to the second moments, pools them with those of earlier rounds where
   these are about the same rows, and takes back what may be only noise (:mod:`.moment_releases`);
4. composes the next guess. A direction that is hidden in the noise is given the size of the noise:
   in the next round its rows are clipped to a smaller radius, and the noise there is smaller. So a
   start that is too wide by any factor narrows round by round.

Rounds end when no direction is hidden or when 0.6 of the budget is gone; the last one spends the
rest. Before it, noisy counts of whitened distances tell whether the rows can be those of a normal
law (:mod:`.tails`). If not, the last round clips farther out, and counts what the clip may take
into the errors; if they are far from it, a covariance is that of one more release about what the
rounds have shown (:func:`measured_once`). Errors hardly depend on the condition number
(``doc/benchmarks/covariance.md``).

References
----------
.. [1] S. Biswas, Y. Dong, G. Kamath and J. Ullman, "CoinPress: practical private mean and
   covariance estimation", NeurIPS 2020; here with isometric noise, hard clipping and its
   correction, and in the order of maps that is right for any number of rounds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..._privacy._grid import Domain
from ..._privacy._session import PrivacySession
from ..._queries._query import TableRows
from ..._queries.grids import GridRows
from ..._queries.whitened import WhitenedMoments
from ..columns.look import tail_shares
from ..shared.centering import noise_sd
from .ellipsoid import NARROWEST, Ellipsoid, Errors, Source, normal_quantile
from .moment_releases import (
    FOURTH_NOISE,
    MOMENTS,
    MomentRelease,
    composed,
    kept,
    noise_entries,
    noise_norm,
    noise_of_products,
    pooled,
    release_moments,
    round_shares,
    shrunk,
    square_of,
    unclip,
    within,
)
from .tails import Clips, Reach, last_clips

_MOST_ROUNDS = 16
_ROUND_SHARES = 0.03, 0.2  # of the budget, for each round but the last
_MOST_EXPLORED = 0.6  # of the budget, before the last round
_LEVEL = 0.25  # of the noise in the whitened second moment, aimed at before the last round
_LOSSES = {0.999: 1.0, 0.99: 1.03, 0.9: 1.15, 0.7: 1.5}  # of efficiency when more is clipped
_NARROWER = 0.1  # of the logarithm of a volume, that a round takes away
HIDDEN = 0.1, 0.01
"""Part of the noise, and variance, that the answer has at least in each direction."""
_LONGER = 1.7  # times the clip of normal laws: beyond, rows are of another
_BITTEN = 0.01  # of a variance, that clips of a normal law take, and all is well
_SEEN = 1.3  # spectral norms of the noise that a variance must be, not to be hidden in it


def refine(
    rounds: "MomentRounds", ellipsoids: list[Ellipsoid], *, tails: bool = True, **options: Any
) -> tuple[list[Ellipsoid], np.ndarray]:
    """Improve released components by rounds of whitened, clipped moments, with all of the plan.

    With the ellipsoids, whether each stood out of the noise in all directions. `options` are those
    of :func:`explored`. Without `tails`, rows are taken to be normal.
    """
    found = explored(rounds, ellipsoids, **options)
    clips = found.clips(rounds) if tails else same_clips(found.radius, found.taken)
    return found.ended(rounds, clips)


def measured_once(rounds: "MomentRounds", guess: Ellipsoid) -> Ellipsoid:
    """One component, of whatever law, by one release of all of the plan: whitened by the guess, and
    clipped where the distances tell."""
    budget = rounds.session.remaining(MOMENTS) * (1 - 1e-9)
    radius = last_radius([guess], rounds.rows.n_features, budget, np.ones(1))
    once = Explored([guess], radius, [None])
    return once.ended(rounds, once.clips(rounds))[0][0]


class Explored(NamedTuple):
    """The result of the rounds before the last one."""

    taken: list[Ellipsoid]
    radius: float  # the best one for normal laws
    pasts: list[Any]

    def clips(self, rounds: "MomentRounds") -> Clips:
        """Those of the last round, by noisy counts of distances."""
        session, rows = rounds.session, rounds.rows
        budget = session.remaining(MOMENTS) * (1 - 1e-9)
        return last_clips(
            session, rows, self.taken, self.radius, rounds.form, budget, extra=rounds.extra
        )

    def may_be_normal(self, clips: Clips) -> bool:
        """True if rows may be of a normal law: else its clips have bitten, and what the rounds made
        of rows may be far too narrow. Where noise is next to nothing, the last clip is far out by
        itself: what counts is how much of a variance a clip of a normal law would take."""
        (tail,) = clips.tails or [None]
        if tail is None or clips.moments <= _LONGER * self.radius:
            return True
        near = tail.beyond * max(tail.start**2 - self.radius**2, 0.0)
        beyond = near + float(tail.excess(max(self.radius, tail.start), 2))
        return beyond <= _BITTEN * self.taken[0].weight

    def ended(self, rounds: "MomentRounds", clips: Clips) -> tuple[list[Ellipsoid], np.ndarray]:
        """The last round."""
        budget = rounds.session.remaining(MOMENTS) * (1 - 1e-9)
        return rounds.round(self.taken, clips, budget, self.pasts, last=True)[:2]


def explored(
    rounds: "MomentRounds",
    ellipsoids: list[Ellipsoid],
    *,
    labeled: bool = False,
    pool: bool = False,
    repair: Callable[[list[Ellipsoid], int], list[Ellipsoid]] = lambda guesses, _: guesses,
    least_rounds: int = 1,
    most_rounds: int = _MOST_ROUNDS,
) -> Explored:
    """The rounds before the last one. `labeled`: the first one takes the labels of the parts for
    weights in components. `pool`: second moments, of "full" components whose rows stay the same,
    are averaged with those of earlier rounds. ``repair(ellipsoids, round)`` gives those that the
    round takes instead. There are more rounds than `least_rounds` as long as directions are hidden
    in the noise and may come out of it."""
    session, rows, form = rounds.session, rounds.rows, rounds.form
    budget = rest = session.remaining(MOMENTS)
    pasts: list[Any] = [[] if pool else None for _ in ellipsoids]
    before = math.inf
    for number in range(most_rounds):
        radius = math.sqrt(max(e.square for e in ellipsoids))
        part = budget * _round_share(ellipsoids, rows.n_features, form, budget)
        taken = repair(ellipsoids, number)
        volume = max(float(np.log(e.scales).sum()) for e in taken)
        if len(taken) == 1 and number > least_rounds and volume > before - _NARROWER:
            break  # what is hidden stays as wide as it is
        before = volume
        by_label = labeled and number == 0
        clips = same_clips(radius, taken)
        ellipsoids, visible, open_ = rounds.round(taken, clips, part, pasts, by_label=by_label)
        rest = session.remaining(MOMENTS) * (1 - 1e-9)
        if number + 1 >= least_rounds and not open_.any() or rest < (1 - _MOST_EXPLORED) * budget:
            break
    radius = last_radius(ellipsoids, rows.n_features, rest, visible)
    return Explored(repair(ellipsoids, number + 1), radius, pasts)


def same_clips(radius: float, ellipsoids: list[Ellipsoid]) -> Clips:
    """One clip of all that is taken to be normal."""
    k = len(ellipsoids)
    return Clips(radius, radius, [None] * k, [(0.0, 0.0)] * k)


def _round_share(ellipsoids: list[Ellipsoid], d: int, form: str, budget: float) -> float:
    """Enough for the noise to be small against a whitened component, within limits.

    The noise of a round that spends a share f of the budget has a spectral norm of level / sqrt(f),
    where a whitened component has eigenvalues near one.
    """
    n = float(np.median([e.weight for e in ellipsoids]))
    level = normal_quantile(0.9, d) * noise_norm(d, form) * noise_sd(budget) / n
    return float(np.clip((level / _LEVEL) ** 2, *_ROUND_SHARES))


def last_radius(ellipsoids: list[Ellipsoid], d: int, rho: float, visible: np.ndarray) -> float:
    """The clipping radius with the smallest predicted error.

    In units of the sampling error d (d + 1) / n of a covariance: clipping to the quantile q costs
    the efficiency `_LOSSES`, and the noise has the squared error square^2 d (d + 1) / (4 rho n^2),
    divided by what clipping keeps of a deviation. Where directions are hidden, quantiles of a
    normal law mean nothing, and the radius stays that of the ellipsoids.
    """
    if not all(visible):
        return math.sqrt(max(e.square for e in ellipsoids))
    n = float(np.median([e.weight for e in ellipsoids]))

    def error(q: float) -> float:
        square = normal_quantile(q, d)
        return _LOSSES[q] + square**2 / (4 * rho * n * kept(square, d + 2) ** 2)

    return math.sqrt(normal_quantile(min(_LOSSES, key=error), d))


class Shape(NamedTuple):
    """The shape that a second moment gives a component; axes and scales in pairs."""

    answer: tuple[np.ndarray, np.ndarray]
    wide: tuple[np.ndarray, np.ndarray]  # where directions are hidden, as wide as the noise
    square: float
    hidden: int
    seen: bool
    hidden_in: np.ndarray  # (d,), which part of each column is along what is hidden


def reshaped(
    ellipsoid: Ellipsoid,
    second: np.ndarray,
    level: Any,
    form: str,
    widest: float = math.inf,
    least: tuple[float, float] = HIDDEN,
) -> Shape:
    """The component as its second moment (d, d) in whitened coordinates says, of noise of about the
    spectral norm `level`; or of H G H, for a matrix `level` of the square of H and G of the norm 1.

    What is hidden in the noise has at most the variance `widest`. The answer has at `least` a part
    of the noise, or a variance that is smaller.
    """
    d = len(second)
    values, vectors = np.linalg.eigh(second)
    if form in ("diag", "spherical"):
        values, vectors = np.diag(second), np.eye(d)
    if np.ndim(level) == 2:
        level = np.einsum("ji,jk,ki->i", vectors, level, vectors)
    # What is not seen may be as large as the noise: whitened lengths then stay below one.
    upper, few = np.maximum(values, 0.0) + np.minimum(level, 1.0) + 1e-3, values <= _SEEN * level
    if ellipsoid.errors is not None:
        # What has been seen before is as wide as it was: clips bite long tails in every round.
        upper = np.where(few, upper, np.maximum(upper, 1.0))
    upper = np.where(few, np.minimum(upper, widest), upper)
    wide = composed(ellipsoid, vectors, np.sqrt(upper), form)
    # What is hidden and no wider than a grid step is known: it is one value.
    hidden = int(np.count_nonzero(few))
    visible = bool(hidden <= np.count_nonzero(wide[1] <= NARROWEST))
    likely = np.where(few, np.minimum(values, widest), values)
    square = normal_quantile(0.9, d) if visible else square_of(likely, level, upper)
    part, most = least
    narrow = np.maximum(values, np.minimum(most, part * level + 1e-9))
    answer = composed(ellipsoid, vectors, np.sqrt(narrow), form)
    along = np.square(ellipsoid.factor @ vectors)
    part = along @ (narrow * few) / (along @ narrow)
    return Shape(answer, answer if visible else wide, square, hidden, visible, part)


@dataclass(frozen=True)
class MomentRounds:
    """The settings that all rounds have in common."""

    session: PrivacySession
    rows: GridRows
    form: str = "full"
    centered: bool = False
    square: float = 1.0  # what weights multiply sampling variances by, see `Weights`
    # (d,), the largest whitened coordinates, where rows are clipped to public bounds alone
    farthest: np.ndarray | None = None
    extra: np.ndarray | None = None  # (d,), of :class:`.margins.Margins`, in squared steps

    def round(
        self,
        ellipsoids: list[Ellipsoid],
        clips: Clips,
        rho: float,
        pasts: list[Any],
        *,
        by_label: bool = False,
        last: bool = False,
    ) -> tuple[list[Ellipsoid], np.ndarray, np.ndarray]:
        """One round of releases, of one pass over the rows. Returns the ellipsoids, which of them
        are seen, and which of the others may be after another round: where noise is not larger than
        they are. `pasts`: of each, what `pooled` keeps of earlier rounds; None: nothing is pooled.
        """
        k, radius = len(ellipsoids), clips.moments
        release = self.released(ellipsoids, clips, rho, by_label=by_label)
        clipped = [replace(e, square=radius**2) for e in ellipsoids]
        updated = [self._updated(j, clipped[j], release, last, clips, pasts[j]) for j in range(k)]
        visible = np.array([result[1] for result in updated])
        hopeless = np.array([result[2] > 1.0 for result in updated])
        return [result[0] for result in updated], visible, ~visible & ~hopeless

    def released(
        self,
        ellipsoids: list[Ellipsoid],
        clips: Clips,
        rho: float,
        *,
        by_label: bool = False,
        about: bool = False,
    ) -> MomentRelease:
        """Whitened, clipped moments of the components, for `rho`. The means keep a fifth where
        there are long tails, and where moments are to be taken `about` them."""
        k = len(ellipsoids)
        fourths = any(reach is not None for reach in clips.reaches)
        components = tuple(e.whitening for e in ellipsoids)
        asked = WhitenedMoments(components, clips[:2], self.form, by_label, fourths)
        sealed = self.rows.ask(asked)
        d, form = self.rows.n_features, self.form
        # A tied moment is divided by the units of all components: a k-th of the noise.
        entries = noise_entries(d, form) / (k**2 if form == "tied" else 1)
        same_for_all = {"centered": self.centered, "tails": fourths or about}
        shares = round_shares(rho, clips.sums, d, entries, **same_for_all)
        return release_moments(self.session, sealed, asked, shares)

    def _updated(
        self,
        j: int,
        ellipsoid: Ellipsoid,
        release: MomentRelease,
        last: bool,
        clips: Clips,
        past: list[Any] | None,
    ) -> tuple[Ellipsoid, bool, float]:
        """The next guess of a component, whether all its directions stand out, and the noise (about
        its spectral norm)."""
        d, form, reach = len(release.means[j]), self.form, clips.reaches[j]
        if self.farthest is not None:  # what bounds take is not undone, and of no law
            reach = Reach(0.0, 0.0, False)
        noise, second = release.noise[j], release.seconds[j]
        if reach is None:
            second = unclip(second, ellipsoid.square, d)
        second = self.with_extra(second, ellipsoid)
        if past is not None and reach is None:
            second, noise = pooled(past, ellipsoid, second, noise)
        level = noise * noise_norm(d, form)
        if self.farthest is not None:
            of_entry, of_norm = noise_of_products(release, j)
            release = replace(release, noise=np.hypot(release.noise, of_entry))
            level = math.hypot(level, of_norm)
        shape = reshaped(ellipsoid, shrunk(second, noise, d, form), level, form)
        visible, hidden = shape.seen, shape.hidden
        axes, scales = shape.answer if visible or last else shape.wide
        shift = within(release.means[j], math.sqrt(ellipsoid.square))
        center = within(ellipsoid.center + ellipsoid.factor @ shift, self.rows.ball)
        weight = max(release.counts[j], 1.0)
        end = Ellipsoid(np.rint(center), axes, scales, shape.square, weight)
        wider = np.square(end.deviations / ellipsoid.deviations)
        if self.farthest is not None:
            # A fourth power is at most the square times the largest square that there can be.
            fourths = np.square(self.farthest + np.abs(shift)) * wider
            # The mean is divided by a noisy count.
            of_mean = np.hypot(release.mean_noise, shift * release.count_noise / release.sizes)
            release = replace(release, fourths=fourths[None], mean_noise=of_mean[None])
        if reach is None:
            # The noise of what is hidden in it is that of the larger guess before.
            narrower = np.ones(d) if visible else np.minimum(wider, 1.0)
            of_round = release, j, noise, ellipsoid.square
            errors = self.normal_errors(*of_round, narrower, clips.unseen[j])
        else:
            errors = self.tail_errors(release, j, wider, reach, clips.moments)
        # Values of a column are known to a grid step, and no better.
        step = NARROWEST / end.deviations
        share = clips.left(j, ellipsoid)
        errors = replace(errors, mean=np.maximum(errors.mean, step), clips=share)
        if end.constant.any():
            errors = replace(errors, second=np.where(end.constant, 1.0, errors.second))
        guess = replace(end, axes=shape.wide[0], scales=shape.wide[1], errors=errors)
        source = Source(ellipsoid, second, noise, guess, clips)
        updated = replace(end, errors=errors, hidden=hidden, source=source)
        return replace(updated, hidden_in=shape.hidden_in), visible, level

    def with_extra(self, second: np.ndarray, by: Ellipsoid) -> np.ndarray:
        """A second moment of rows whitened by an ellipsoid, with the `extra` variances."""
        if self.extra is None:
            return second
        white = by.axes / by.scales
        return second + (white.T * self.extra) @ white

    def normal_errors(
        self,
        release: MomentRelease,
        j: int,
        noise: float,
        square: float,
        wider: np.ndarray,
        unseen: tuple[float, float],
    ) -> Errors:
        """Standard errors of a normal component for the noise and the sampling of its units.

        `noise` is that of an entry of its second moment, after pooling; `wider` what the variances
        of columns were multiplied by; `unseen` what the noise may hide, of means and of variances.
        A whitened normal row has
        coordinates of variance 1, squares of variance 2 and products of variance 1; the mean of d
        squares has 2 / d. What clipping leaves of a deviation is divided by.
        """
        d = len(release.means[j])
        kept_share, n = kept(square, d + 2), max(release.sizes[j], 1.0) / self.square
        noise, of_squares = (noise / d, 2 / (n * d)) if self.form == "spherical" else (noise, 2 / n)
        count = max(release.counts[j], 1.0) / self.square
        of_mean, taken = unseen[0], unseen[1] / wider
        return Errors(
            np.sqrt((np.square(release.mean_noise[j]) + of_mean**2) / wider + 1 / count),
            np.hypot(np.hypot(noise / wider, math.sqrt(of_squares)) / kept_share, taken),
            release.count_noise,
            unseen=of_mean / np.sqrt(wider),
            unseen_second=taken,
        )

    def tail_errors(
        self, release: MomentRelease, j: int, wider: np.ndarray, reach: Reach, radius: float
    ) -> Errors:
        """Return the errors for rows of any law, with what the clip may have removed: fourth powers
        show how uncertain a variance is, and which columns have the long tails that are clipped."""
        assert release.fourths is not None  # as there is a reach
        those = slice(None) if self.form == "tied" else slice(j, j + 1)
        sizes = np.maximum(release.counts[those], 1.0)
        fourths = np.average(release.fourths[those], axis=0, weights=sizes)
        fourths = np.maximum(fourths, 3 * wider**2)
        share = tail_shares(fourths, release.noise[j] * radius**2 * FOURTH_NOISE)
        size, count = (max(n[j], 1.0) / self.square for n in (release.sizes, release.counts))
        taken = reach.square_excess * share / wider
        noise = release.noise[j] / wider
        squares = np.square(taken) + (fourths / wider**2 - 1) / size
        if self.form == "spherical":
            d = len(share)
            noise, squares = noise / d, np.full(d, squares.sum() / d**2)
        away = reach.excess * share
        mean = np.square(release.mean_noise[j]) + np.square(away)
        return Errors(
            np.sqrt(mean / wider + (1 + taken) / count),
            np.sqrt(np.square(noise) + squares),
            release.count_noise,
            (away / np.sqrt(wider), taken),
            reach.heavy,
        )


def rows_in_bounds(
    table: TableRows, domain: Domain, *, centered: bool = False
) -> tuple[Domain, GridRows]:
    """The public ball of all rows, about the origin if that is their mean, and the rows in it."""
    if centered:
        # The ball about the origin that holds the bounds: farther out there is nothing.
        reach = float(np.linalg.norm(domain.center)) + domain.radius
        domain = Domain(np.zeros(table.n_features), reach, domain.low, domain.high)
    return domain, GridRows.quantize(table, domain)


def fit_gram(
    session: PrivacySession, rows: GridRows, domain: Domain, *, centered: bool = False
) -> Ellipsoid:
    """One release of all the budget, of rows clipped to public bounds: the classical route. What it
    says of the rows holds for any law, as far as the bounds go."""
    d = rows.n_features
    start, farthest = Ellipsoid.ball(np.zeros(d), rows.ball), np.ones(d)
    if domain.low is not None and domain.high is not None:
        ends = np.abs([domain.low - domain.center, domain.high - domain.center])
        farthest = ends.max(axis=0) / (rows.unit * rows.ball)
    context = MomentRounds(session, rows, centered=centered, farthest=farthest)
    rho = session.remaining(MOMENTS) * (1 - 1e-9)
    (end,), _, _ = context.round([start], same_clips(1.0, [start]), rho, [None], last=True)
    return end
