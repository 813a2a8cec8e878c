"""Covariances and principal axes of rows that come day by day.

*Covariances.* A later day is one round of whitened moments. It whitens its rows by what all days
before have shown, clips them there, and spends all of its budget on one release. Second moments are
averaged by the inverse variances of their entries, of noise and sampling together, in the newest
whitened coordinates; means by the precision of each column (:mod:`..friendly.mean_facts`). Both are
taken about the center there was, which has no noise of the day, so that the average has no bias
however few rows a day has. Nothing is drawn toward the last guess, which is made of the same days.

What a clip takes from a long tail it takes every day: such biases are averaged, and do not fall.

*Principal axes.* A later day is one release of moments. What is known of the covariance C decides
the noise of the next day. With rows mapped by the inverse root of a matrix W, and clipped there,
the noise of a direction is in proportion to the length of a row there, whose mean square is tr(W^-1
C), and to the width of W in that direction. Of W with the axes of C the sum of the squared noises
of all entries is (tr(W) tr(W^-1 C))^2, which is least where W is the root of C (Cauchy-Schwarz). A
ball, W = I, gives narrow directions the noise of wide ones; whitening, W = C, makes all rows
equally long, and drowns wide directions in the length of many narrow ones. What is hidden in the
noise counts as wide as the noise.

Days are averaged as those of covariances are (:mod:`.moment_releases`), about the mean of all of
them. Nothing is undone that a clip takes: rows there have no normal law of one scale.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np

from ..._privacy._session import PrivacySession
from ..._queries.grids import GridRows
from ..friendly.mean_facts import DayMean, Means
from ..shared.bounds import noise_edge
from .ellipsoid import NARROWEST, Ellipsoid, Errors, Source, normal_quantile, symmetric
from .moment_releases import (
    DISTANCES,
    LIKE,
    MOMENTS,
    DivisorRatio,
    MomentRelease,
    about,
    averaged,
    noise_norm,
    products,
    stretch,
    unclip,
    with_sampling,
    within,
)
from .rounds import HIDDEN, MomentRounds, last_radius, reshaped
from .tails import Clips, Distances, PowerLaw, last_clips, reach_of

# -- covariances -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class MomentDays:
    """The released state of a component after some days, in grid steps."""

    source: Source
    # (d, d), positive semidefinite, where rows of the source were whitened: noise and sampling are
    # those of H G H, for H the root of this and G as in `noise_norm`
    noise: np.ndarray
    means: Means
    variance: np.ndarray  # (d,), of the error of the variances of columns, in parts of them
    taken: np.ndarray  # (d,), by clips, in parts of them
    unseen: np.ndarray  # (d,), by clips of tails that noise may hide, in parts of them
    heavy: bool
    distances: tuple[Distances, Ellipsoid] | None  # and that of the first rows that were counted
    radii: np.ndarray  # (2,), that rows were clipped to, about: of sums, and of moments
    normal: bool  # whether the clips were those of a normal law
    part: DivisorRatio = DivisorRatio()

    @classmethod
    def of(cls, first: Ellipsoid, square: float, j: int = 0) -> Self:
        """Build the state of the `j`-th component of a fit; `square` is that of the weights of
        rows."""
        errors, source = first.errors, first.source
        assert errors is not None and source is not None
        taken, clips = _taken(errors), source.clips
        mean = _day_mean(first.center, first.deviations, errors, first.weight)
        # Of the rounds before, nothing is needed on later days.
        by, noise = replace(source.by, errors=None, source=None), source.noise
        return cls(
            replace(source, by=by),
            with_sampling(noise, first.weight, square) * np.eye(len(taken)),
            Means.of_none(len(taken)).and_one(mean, 1.0),
            _variance(errors),
            taken,
            np.zeros(len(taken)) + errors.unseen_second,
            errors.heavy,
            None if clips.distances is None else (clips.distances.of(j), source.guess),
            np.array(clips[:2]),
            clips.reaches[0] is None,
        )

    def on_grid(self, scale: float, shift: np.ndarray) -> Self:
        """In steps of another grid: `scale` of its steps to one, about a point that is `shift` of
        them from the other's."""

        def moved(ellipsoid: Ellipsoid) -> Ellipsoid:
            center = np.rint(ellipsoid.center * scale + shift)
            scales = np.maximum(ellipsoid.scales * scale, NARROWEST)
            return replace(ellipsoid, center=center, scales=scales)

        source, means = self.source, self.means
        return replace(
            self,
            source=replace(source, by=moved(source.by), guess=moved(source.guess)),
            means=replace(
                means,
                precision=means.precision / scale**2,
                mean=means.mean * scale + shift,
                variance=means.variance * scale**2,
                bias=means.bias * scale,
                spread=means.spread * scale,
            ),
        )

    def told_of_tails(self, errors: Errors, of_old: Errors | None, spread: np.ndarray) -> Self:
        """With what all days know of the tails. `errors` are those of the new day, `of_old` those
        that it would have with the clips of earlier days; None for a normal law."""
        means = self.means
        if of_old is None:
            # How much of a tail noise may hide is known better of all days than of any of them.
            bias = np.minimum(errors.unseen * spread, means.bias)
            unseen = np.minimum(errors.unseen_second, self.unseen)
            known = replace(self, means=replace(means, bias=bias), unseen=unseen)
            return known if self.normal else self
        assert of_old.clipped is not None
        bias, precision = of_old.clipped[0] * spread, means.precision
        if self.normal:  # and all of it is news
            precision = precision / (1 + precision * np.square(bias))
        means = replace(means, bias=bias, precision=precision)
        taken = of_old.clipped[1]
        return replace(self, means=means, taken=taken, unseen=np.zeros(len(taken)))


@dataclass(frozen=True)
class EarlierDays:
    """The state that a later day starts from, all of it released. The squares of its weights are
    not: 1 bounds what they multiply its sampling variances by."""

    days: list[MomentDays]  # of each component
    unit: float  # a step of the grid
    origin: np.ndarray  # that the grid is about
    columns: Any = None  # that rows are read in, see :mod:`.known_columns`

    @classmethod
    def of(cls, ends: list[Ellipsoid], square: float, unit: float, origin: np.ndarray) -> Self:
        """Build the state of all components; `square` is that of the weights of the fit's rows."""
        days = [MomentDays.of(end, square, j) for j, end in enumerate(ends)]
        return cls(days, unit, origin)

    def and_one(
        self,
        rounds: MomentRounds,
        origin: np.ndarray,
        keep: float,
        *,
        by_label: bool = False,
        repair: Callable[[Ellipsoid], Ellipsoid] | None = None,
    ) -> tuple[list[Ellipsoid], Self]:
        """The components of all days with one more, whose rows are on a grid about the origin, and
        what the next one starts from; `repair` gives guesses that its rows are whitened by instead.
        The rest is as in :func:`later_day`."""
        unit = rounds.rows.unit
        days = [each.on_grid(self.unit / unit, (self.origin - origin) / unit) for each in self.days]
        if repair:
            sources = [replace(each.source, guess=repair(each.source.guess)) for each in days]
            pairs = zip(days, sources, strict=True)
            days = [replace(each, source=source) for each, source in pairs]
        ends, days = later_day(rounds, days, keep, by_label)
        return ends, replace(self, days=days, unit=unit, origin=origin)


def later_day(
    rounds: MomentRounds, days: list[MomentDays], keep: float, by_label: bool
) -> tuple[list[Ellipsoid], list[MomentDays]]:
    """The components of all days with the rows of one more, on the same grid; a part `keep` of what
    earlier ones have shown counts. `by_label`: rows have labels, which say what they belong to."""
    session, rows, form = rounds.session, rounds.rows, rounds.form
    # Clips are chosen for all days as one: their rows, and noise that adds up.
    guesses = [
        replace(guess, weight=max(keep * each.means.size, 0.0) + guess.weight)
        for each in days
        for guess in [each.source.guess]
    ]
    part = sum(each.source.guess.weight for each in days) / sum(e.weight for e in guesses)
    budget = session.remaining(DISTANCES)
    all_days = (session.remaining(MOMENTS) - budget) * part
    narrow = np.array([guess.hidden == 0 for guess in guesses])
    radius = last_radius(guesses, rows.n_features, all_days, narrow)
    clips = last_clips(
        session,
        rows,
        guesses,
        radius,
        form,
        all_days + budget,
        (_distances(days), keep),
        rounds.extra,
    )
    rho = session.remaining(MOMENTS) * (1 - 1e-9)
    release = rounds.released(guesses, clips, rho, by_label=by_label)
    day = _Day(rounds, release, clips, guesses, keep)
    sizes = np.maximum(release.counts, 1.0)
    seconds = release.seconds + products(release.means, form, sizes)
    averaged = [day.averaged(j, each, seconds[j]) for j, each in enumerate(days)]
    centers = np.array([guess.center for guess in guesses])
    if not rounds.centered:
        centers = np.array([np.rint(within(each.means.mean, rows.ball)) for each in averaged])
    offsets = [
        (guess.axes / guess.scales).T @ (center - guess.center)
        for guess, center in zip(guesses, centers, strict=True)
    ]
    sizes = np.maximum([each.means.size for each in averaged], 1.0)
    shifts = products(np.array(offsets), form, sizes)
    ended = [day.ended(j, averaged[j], centers[j], shifts[j]) for j in range(len(days))]
    return [end for end, _ in ended], [each for _, each in ended]


def _distances(days: list[MomentDays]) -> Distances | None:
    """Those of all components, where they are known of all."""
    known = [each.distances[0] for each in days if each.distances is not None]
    if len(known) < len(days):
        return None
    return Distances(np.vstack([each.counts for each in known]), known[0].sd)


@dataclass(frozen=True)
class _Day:
    """The releases of a day, of components in an order that never changes."""

    rounds: MomentRounds
    release: MomentRelease
    clips: Clips
    guesses: list[Ellipsoid]  # of so many units as all days have
    keep: float

    def averaged(self, j: int, days: MomentDays, second: np.ndarray) -> MomentDays:
        """With the day, whose `second` moments are about the center of the guess, as are all."""
        release, clips, guess, form = self.release, self.clips, self.guesses[j], self.rounds.form
        errors, of_old = self._errors(j, days)
        days = days.told_of_tails(errors, of_old, guess.deviations)
        mean, normal, d = release.means[j], clips.reaches[j] is None, len(second)
        second = unclip(second, clips.moments**2, d, known=True) if normal else second
        second = self.rounds.with_extra(second, guess)
        # A trace is of d squares.
        square = self.rounds.square * (d if form == "spherical" else 1)
        noise = with_sampling(release.noise[j], float(release.sizes[j]), square)
        of_past = days.noise / math.sqrt(self.keep)
        # What a clip takes more than the other ones makes a day count less, and is no noise that
        # could hide a direction; what all of them take does neither.
        more = float(np.mean(_taken(errors) - days.taken))
        new = math.hypot(noise, max(more, 0.0)) * np.eye(d)
        old = of_past + max(-more, 0.0) * np.eye(d)
        second, shares, across = averaged(
            (days.source.by, days.source.second), guess, second, new, old
        )
        share = float(shares.mean())
        part = days.part.and_one(release, share, slice(None) if form == "tied" else [j])
        # A day of fewer rows than it was divided by shows a part of the way to their mean.
        center = guess.center + guess.factor @ within(mean / part.known, clips.sums)
        more = (part.known**-2 - 1) * release.mean_noise[j] ** 2
        errors_of_mean = replace(errors, mean=np.sqrt(np.maximum(errors.mean**2 + more, 0.0)))
        count = float(release.counts[j])
        mean = _day_mean(center, guess.deviations, errors_of_mean, count)
        distances = None
        if clips.distances is not None:
            distances = clips.distances.of(j), (days.distances or (None, guess))[1]
        if len(self.guesses) > 1:  # the guess of a single one is never narrower than the noise
            of_past = across @ of_past @ across.T
        of_past = np.diag(of_past)
        part_of = np.diag(shares)
        level = np.hypot((1 - part_of) * of_past, part_of * noise)
        return replace(
            days,
            source=Source(guess, second, 0.0, guess, clips),
            noise=np.diag(level),
            means=days.means.and_one(mean, self.keep),
            variance=(1 - share) ** 2 * days.variance + share**2 * _variance(errors),
            taken=(1 - share) * days.taken + share * _taken(errors),
            heavy=days.heavy or errors.heavy,
            distances=distances,
            radii=days.radii ** (1 - share) * np.array(clips[:2]) ** share,
            normal=normal and (days.normal or share > 0.5),
            part=part,
        )

    def ended(
        self, j: int, days: MomentDays, center: np.ndarray, shift: np.ndarray
    ) -> tuple[Ellipsoid, MomentDays]:
        """The component that all days come to, its center off by what makes the square `shift`;
        and with the guess that the rows of the next day are whitened by."""
        guess, source, form = self.guesses[j], days.source, self.rounds.form
        second = source.second - days.part.known * shift
        edge = days.noise / days.part.known * noise_norm(len(second), form)
        several = len(self.guesses) > 1
        # Several components compete for rows: none may be as wide as all of its noise, which would
        # grow with the guess and the guess with it, or next to nothing.
        limits = (1.0, (0.5, 1.0)) if several else (math.inf, HIDDEN)
        shape = reshaped(guess, second / days.part.known, edge, form, *limits)
        after = shape.answer if several else shape.wide
        if days.distances is not None:
            like = LIKE[self.clips.reaches[j] is not None]
            if stretch(days.distances[1], *after) >= like:
                days = replace(days, distances=None)
        size = max(days.means.size, 1.0)
        end = Ellipsoid(center, *shape.answer, shape.square, size, hidden=shape.hidden)
        end = replace(end, hidden_in=shape.hidden_in)
        errors = replace(_errors(days, end.deviations), clips=self.clips.left(j, guess))
        end = replace(end, errors=errors)
        count = max(float(self.release.counts[j]), 1.0)
        wide = replace(end, axes=after[0], scales=after[1], weight=count)
        return end, replace(days, source=replace(source, second=second, guess=wide))

    def _errors(self, j: int, days: MomentDays) -> tuple[Errors, Errors | None]:
        """Those of the day alone, and `of_old` of `told_of_tails`."""
        rounds, release, clips = self.rounds, self.release, self.clips
        reach, same = clips.reaches[j], np.ones(rounds.rows.n_features)
        if reach is None:
            of_day = release, j, release.noise[j], clips.moments**2, same, clips.unseen[j]
            return rounds.normal_errors(*of_day), None
        errors = rounds.tail_errors(release, j, same, reach, clips.moments)
        tail = cast("PowerLaw", clips.tails[j % len(clips.tails)])  # or there is one of all
        before = reach_of(tail, self.guesses[j].weight, *days.radii)
        return errors, rounds.tail_errors(release, j, same, before, clips.moments)


def _day_mean(center: np.ndarray, spread: np.ndarray, errors: Errors, count: float) -> DayMean:
    of_clips = 0.0 if errors.clipped is None else errors.clipped[0]
    bias = np.maximum(of_clips, errors.unseen)
    return DayMean(center, errors.mean * spread, bias * spread, spread, count, errors.weight)


def _taken(errors: Errors) -> np.ndarray:
    """By clips, of variances in parts of them."""
    return np.zeros(len(errors.mean)) if errors.clipped is None else errors.clipped[1]


def _variance(errors: Errors) -> np.ndarray:
    """Return the relative variance of the errors of variances, without the part that clips
    remove."""
    taken = np.square(_taken(errors)) + np.square(errors.unseen_second)
    return np.maximum(np.square(errors.second) - taken, 0.0)


def _errors(days: MomentDays, deviations: np.ndarray) -> Errors:
    means, heavy = days.means, bool(days.taken.any())
    bias = means.bias / deviations
    variance = days.variance / days.part.known**2 + days.part.variance
    return Errors(
        np.hypot(np.sqrt(means.variance) / deviations, bias),
        np.sqrt(variance + np.square(days.taken) + np.square(days.unseen)),
        math.sqrt(means.size_variance),
        (bias, days.taken) if heavy else None,
        days.heavy,
        bias,
        days.unseen,
    )


# -- principal axes --------------------------------------------------------------------------------


_INSIDE = 0.99  # of the rows of a normal law, the part that is not clipped


@dataclass(frozen=True)
class ReleasedAxes:
    """The axes that all days have shown, in grid steps."""

    covariance: np.ndarray  # (d, d), symmetric
    # (d, d), positive semidefinite: the noise of the covariance is that of H G H, for H the root of
    # this and G symmetric with variance 1 on the diagonal and 1 / 2 off it
    noise: np.ndarray
    variance: float  # of the other errors of a variance, in parts of it
    taken: float  # about the most that clips take of the sum of variances, in parts of it
    seen: bool  # whether any direction stands out from the noise
    means: Means


@dataclass(frozen=True)
class AxesDays:
    """The released state of the days so far, in grid steps."""

    by: Ellipsoid  # that rows were whitened by
    second: np.ndarray  # (d, d), their second moment there
    level: float  # of the noise of an entry on the diagonal, with sampling
    center: np.ndarray  # (d,), integers: of the moments of a next day
    count: float  # of the rows of the last day
    means: Means
    noise: float  # that of privacy alone
    variance: float  # of the error of a variance by sampling, in parts of it
    taken: float  # about the most that clips take of the sum of variances, in parts of it
    unseen: float = math.inf  # the same of tails that noise may hide
    # with the ellipsoid of the first rows counted, and whether tails are seen
    distances: tuple[Distances, Ellipsoid, bool] | None = None
    part: DivisorRatio = DivisorRatio()

    @classmethod
    def of(
        cls,
        center: np.ndarray,
        second: np.ndarray,
        noise: float,
        size: float,
        first: DayMean,
        taken: float,
        square: float,
    ) -> Self:
        """Build the state of a first day: second moments about an integer center, divided by
        `size`, and `noise` that of an entry. Its weights multiply sampling variances by `square`;
        those of later days, which are not known, by 1 at the most."""
        by, part = (
            Ellipsoid.ball(center, 1.0),
            DivisorRatio(first.size / size, first.size_sd / size),
        )
        variance = max(float(np.trace(second)), 0.0) / len(center)
        level = math.hypot(noise, with_sampling(0.0, size, square) * variance)
        variance, means = 2 * square / size, Means.of_none(len(center)).and_one(first, 1.0)
        count, errors = max(first.size, 1.0), (noise, variance, taken)
        return cls(by, second, level, center, count, means, *errors, part=part)

    @cached_property
    def guess(self) -> Ellipsoid:
        """The ellipsoid that whitens the rows of the next day; most fits have none."""
        known = self.second / self.part.known, self.level / self.part.known
        return _between(self.by, *known, self.center, self.count)

    def and_one(
        self, session: PrivacySession, rows: GridRows, keep: float
    ) -> tuple[ReleasedAxes, Self]:
        """Return the state with the rows of one more day; a part `keep` of what earlier ones have
        shown counts."""
        guess = self.guess
        clips = self._clips(session, rows, keep)
        same_clips = clips._replace(reaches=[None])  # nothing asks for fourth powers
        budget = session.remaining(MOMENTS) * (1 - 1e-9)
        rounds = MomentRounds(session, rows)
        release = rounds.released([guess], same_clips, budget, about=True)
        mean, size = release.means[0], float(release.sizes[0])
        second, noise = release.seconds[0] + np.outer(mean, mean), float(release.noise[0])
        # What the day itself shows must not weigh it: a long tail would count less.
        sampling = with_sampling(0.0, size, 1.0) * (1 - guess.hidden / rows.n_features)
        new, old = math.hypot(noise, sampling), self.level / math.sqrt(keep)
        whole = np.eye(rows.n_features)
        known = (self.by, self.second), guess, second, new * whole, old * whole
        second, shares, _ = averaged(*known)
        # By the spectral norm; noise before as whitened by the guess.
        share = float(((1 + whole) * shares).mean(axis=0).max())
        share = min(share * len(whole) / (len(whole) + 1), 1.0)
        before = new * math.sqrt(share / max(1 - share, 1e-12))
        wider = (1 - share) * before / old  # what the noise of earlier days is multiplied by
        part = self.part.and_one(release, share)
        taken, unseen = _by_clips(clips, rows.n_features - guess.hidden)
        means = self._means(release, clips, keep)
        center = np.rint(within(means.mean, rows.ball))
        second = about(center, guess, second, part.known)
        of_mean = part.known * _of_center(center, guess, np.sqrt(means.variance))
        level = math.hypot((1 - share) * before, share * new)
        tails = clips.reaches[0] is not None
        assert clips.distances is not None  # as there is a past
        first = guess if self._alike is None else self._alike[1]
        days = replace(
            self,
            by=guess,
            second=second,
            level=level,
            center=center,
            count=max(float(release.counts[0]), 1.0),
            means=means,
            noise=math.hypot(wider * self.noise, share * noise, of_mean),
            variance=(1 - share) ** 2 * self.variance + share**2 * 2 / size,
            taken=(1 - share) * self.taken + share * taken,
            unseen=min(self.unseen, unseen),
            distances=(clips.distances, first, tails),
            part=part,
        )
        return days._released(not tails), days

    @property
    def _alike(self) -> tuple[Distances, Ellipsoid] | None:
        """Distances, and the ellipsoid of the first, where they are much the same in that of the
        next day."""
        if self.distances is None:
            return None
        distances, first, tails = self.distances
        like = stretch(first, self.guess.axes, self.guess.scales) < LIKE[tails]
        return (distances, first) if like else None

    def _clips(self, session: PrivacySession, rows: GridRows, keep: float) -> Clips:
        """Chosen for all days as one: their rows, and noise that adds up."""
        guess, same_clips = self.guess, self._alike
        of_all = replace(guess, weight=max(keep * self.means.size, 0.0) + guess.weight)
        budget = session.remaining(DISTANCES)
        rho = (session.remaining(MOMENTS) - budget) * guess.weight / of_all.weight + budget
        past = (None if same_clips is None else same_clips[0]), keep
        return last_clips(session, rows, [of_all], math.sqrt(guess.square), "full", rho, past)

    def _means(self, release: MomentRelease, clips: Clips, keep: float) -> Means:
        """Those of all days."""
        guess, means, (reach,) = self.guess, self.means, clips.reaches
        count = float(release.counts[0])
        widths = np.sqrt(np.square(guess.factor).sum(axis=1))
        covariance = self._released(True).covariance  # of the days before
        spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        bias = widths * (clips.unseen[0][0] if reach is None else reach.excess)
        if reach is None:  # how much noise may hide is known better of all days than of any
            means = replace(means, bias=np.minimum(means.bias, bias))
        square = np.square(release.mean_noise[0] * widths) + np.square(bias)
        square += np.square(spread) / max(count, 1.0)
        center = guess.center + guess.factor @ within(release.means[0], clips.sums)
        day = DayMean(center, np.sqrt(square), bias, spread, count, release.count_noise)
        return means.and_one(day, keep)

    def _released(self, normal: bool) -> ReleasedAxes:
        by, known, d = self.by, self.part.known, len(self.means.mean)
        second, noise = self.second / known, self.noise / known
        return ReleasedAxes(
            symmetric(by.factor @ second @ by.factor.T),
            noise * symmetric(by.factor @ by.factor.T),
            self.variance / known**2 + self.part.variance,
            min(self.taken + (self.unseen if normal else 0.0), 1.0),
            bool(np.linalg.eigvalsh(second)[-1] > noise_edge(noise, d)),
            self.means,
        )


def _by_clips(clips: Clips, squares: int) -> tuple[float, float]:
    """Return the share that clips remove from squared lengths, given their average, and the share
    that they may remove from tails that noise hides: infinite where tails are visible."""
    (reach,) = clips.reaches
    if reach is None:
        return 0.0, clips.unseen[0][1] / squares
    return min(reach.square_excess / squares, 1.0), math.inf


def _of_center(center: np.ndarray, guess: Ellipsoid, errors: np.ndarray) -> float:
    """Return how much the errors (d,) of a mean add to the noise of an entry of moments about it,
    at most.

    In whitened coordinates, from those about the center there was, which is at the distance o, o
    o^T is taken off. With the error e of o this is off by o e^T + e o^T + e e^T.
    """
    inverse = guess.axes / guess.scales
    error = math.sqrt(float(np.mean(np.square(errors) @ np.square(inverse))))
    return error * (float(np.linalg.norm((center - guess.center) @ inverse)) + error)


def _between(
    by: Ellipsoid, second: np.ndarray, level: float, center: np.ndarray, weight: float
) -> Ellipsoid:
    """Return the ellipsoid that whitens the rows of the next day, halfway between a ball and their
    covariance, of second moments as whitened by another ellipsoid, with the noise `level` of an
    entry.

    It is as wide as makes the squared lengths those of a chi-square law. Of v_i along the axes,
    with variances that sum to t and have squares that sum to s, that law has t^2 / s degrees.
    """
    d, widths = len(second), by.factor @ by.factor.T
    values, vectors = np.linalg.eigh(symmetric(by.factor @ second @ by.factor.T))
    noise = level * np.einsum("ji,jk,ki->i", vectors, widths, vectors)
    roots = np.sqrt(np.maximum(values, noise_norm(d, "full") * noise))
    values, noise = values / roots, noise / roots
    total = max(float(values.sum()), 0.0) + 2 * float(np.linalg.norm(noise))
    # The squares of eigenvalues are those of all entries: less what noise has of these.
    squares = float(values @ values) - (float(noise.sum()) ** 2 + float(noise @ noise)) / 2
    degrees = round(min(max(total**2 / max(squares, total**2 / d), 1.0), d))
    scales = np.maximum(np.sqrt(roots * (total / degrees)), NARROWEST)
    square = normal_quantile(_INSIDE, degrees)
    return Ellipsoid(center, vectors, scales, square, weight, hidden=d - degrees)
