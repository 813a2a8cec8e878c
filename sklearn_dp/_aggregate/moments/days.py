"""Covariances of rows that come day by day: a later day is one round of whitened moments.

It whitens its rows by what all days before have shown, clips them there, and spends all of its
budget on one release. Second moments are averaged by the inverse variances of their entries, of
noise and sampling together, in the newest whitened coordinates; means by the precision of each
column (:mod:`..friendly.days`). Both are taken about the center there was, which has no noise of
the day, so that the average has no bias however few rows a day has. Nothing is drawn toward the
last guess, which is made of the same days.

What a clip takes from a long tail it takes every day: such biases are averaged, and do not fall.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np

from ..._privacy._session import PrivacySession
from ..friendly.days import DayMean, Means
from ..shared.rows import GridTable
from .ellipsoid import NARROWEST, Ellipsoid, Errors, Source
from .estimates import noise_norm, unclip, within
from .joined import LIKE, Part, about, averaged, stretch, with_sampling
from .moment_releases import DISTANCES, MOMENTS, MomentRelease
from .rounds import MomentRounds, last_radius, reshaped
from .tails import Clips, Distances, PowerLaw, last_clips, reach_of


@dataclass(frozen=True)
class MomentDays:
    """What some days have shown of a component, in grid steps."""

    source: Source  # its noise is that of an entry, with sampling
    means: Means
    variance: np.ndarray  # (d,), of the error of the variances of columns, in parts of them
    taken: np.ndarray  # (d,), by clips, in parts of them
    unseen: np.ndarray  # (d,), by clips of tails that noise may hide, in parts of them
    heavy: bool
    distances: tuple[Distances, Ellipsoid] | None  # and that of the first rows that were counted
    radii: np.ndarray  # (2,), that rows were clipped to, about: of sums, and of moments
    normal: bool  # whether the clips were those of a normal law
    part: Part = Part()

    @classmethod
    def of(cls, first: Ellipsoid, square: float) -> Self:
        """Of the result of a fit; `square` is that of the weights of rows."""
        errors, source = first.errors, first.source
        assert errors is not None and source is not None
        taken, clips = _taken(errors), source.clips
        mean = _day_mean(first.center, first.deviations, errors, first.weight)
        # Of the rounds before, nothing is needed on later days.
        by, noise = replace(source.by, errors=None, source=None), source.noise
        return cls(
            replace(source, by=by, noise=with_sampling(noise, first.weight, square)),
            Means.of_none(len(taken)).and_one(mean, 1.0),
            _variance(errors),
            taken,
            np.zeros(len(taken)) + errors.unseen_second,
            errors.heavy,
            None if clips.distances is None else (clips.distances, source.guess),
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
    """What a later day starts from, all of it released."""

    days: MomentDays
    square: float  # what weights multiply sampling variances by
    unit: float  # a step of the grid
    origin: np.ndarray  # that the grid is about

    @classmethod
    def of(cls, end: Ellipsoid, square: float, unit: float, origin: np.ndarray) -> Self:
        """Of the result of a fit."""
        return cls(MomentDays.of(end, square), square, unit, origin)

    def and_one(
        self,
        session: PrivacySession,
        rows: GridTable,
        origin: np.ndarray,
        keep: float,
        *,
        centered: bool,
    ) -> tuple[Ellipsoid, Self]:
        """The component of all days with one more, whose rows are on a grid about the origin, and
        what the next one starts from; a part `keep` of what earlier ones have shown counts."""
        days = self.days.on_grid(self.unit / rows.unit, (self.origin - origin) / rows.unit)
        options: Any = {"centered": centered, "square": self.square}
        end, days = later_day(session, rows, days, keep, **options)
        return end, replace(self, days=days, unit=rows.unit, origin=origin)


def later_day(
    session: PrivacySession,
    rows: GridTable,
    days: MomentDays,
    keep: float,
    *,
    centered: bool,
    square: float,
) -> tuple[Ellipsoid, MomentDays]:
    """The component of all days with the rows of one more, on the same grid; a part `keep` of what
    earlier ones have shown counts."""
    d, count = rows.n_features, days.source.guess.weight
    # Clips are chosen for all days as one: their rows, and noise that adds up.
    guess = replace(days.source.guess, weight=keep * days.means.size + count)
    own = session.remaining(DISTANCES)
    all_days = (session.remaining(MOMENTS) - own) * count / guess.weight
    radius = last_radius([guess], d, all_days, np.array([guess.hidden == 0]))
    past = (None if days.distances is None else days.distances[0]), keep
    clips = last_clips(session, rows, [guess], radius, "full", all_days + own, past)
    rounds = MomentRounds(session, rows, "full", centered, square=square)
    release = rounds.released([guess], clips, session.remaining(MOMENTS) * (1 - 1e-9))
    errors, of_old = _errors_of_day(rounds, release, clips, days, guess.weight)
    days = days.told_of_tails(errors, of_old, guess.deviations)
    mean, normal = release.means[0], clips.reaches[0] is None
    second = release.seconds[0] + np.outer(mean, mean)
    second = unclip(second, clips.moments**2, d, known=True) if normal else second
    noise = with_sampling(release.noise[0], float(release.sizes[0]), square)
    of_past = days.source.noise / math.sqrt(keep)
    # What a clip takes more than the other ones makes a day count less, and is no noise that could
    # hide a direction; what all of them take does neither.
    more = float(np.mean(_taken(errors) - days.taken))
    new, old = math.hypot(noise, max(more, 0.0)), math.hypot(of_past, max(-more, 0.0))
    second, share, _ = averaged((days.source.by, days.source.second), guess, second, new, old)
    part = days.part.and_one(release, share)
    level = math.hypot((1 - share) * of_past, share * noise)
    center = guess.center + guess.factor @ within(mean, clips.sums)
    count = max(float(release.counts[0]), 1.0)
    means = days.means.and_one(_day_mean(center, guess.deviations, errors, count), keep)
    center = guess.center
    if not centered:
        center = np.rint(within(means.mean, rows.ball))
        second = about(center, guess, second, part.known)
    edge = level / part.known * noise_norm(d, "full")
    shape = reshaped(guess, second / part.known, edge, "full")
    distances = cast("Distances", clips.distances), (days.distances or (None, guess))[1]
    days = replace(
        days,
        means=means,
        variance=(1 - share) ** 2 * days.variance + share**2 * _variance(errors),
        taken=(1 - share) * days.taken + share * _taken(errors),
        heavy=days.heavy or errors.heavy,
        distances=distances if stretch(distances[1], *shape.wide) < LIKE[not normal] else None,
        radii=days.radii ** (1 - share) * np.array(clips[:2]) ** share,
        normal=normal and (days.normal or share > 0.5),
        part=part,
    )
    end = Ellipsoid(center, *shape.answer, shape.square, means.size, hidden=shape.hidden)
    end = replace(end, errors=_errors(days, end.deviations))
    wide = replace(end, axes=shape.wide[0], scales=shape.wide[1], weight=count)
    return end, replace(days, source=Source(guess, second, level, wide, clips))


def _errors_of_day(
    rounds: MomentRounds, release: MomentRelease, clips: Clips, days: MomentDays, size: float
) -> tuple[Errors, Errors | None]:
    """Those of the day alone, and `of_old` of `told_of_tails`; all days have `size` units."""
    (reach,), same = clips.reaches, np.ones(rounds.rows.n_features)
    if reach is None:
        of_day = release, 0, release.noise[0], clips.moments**2, same, clips.unseen[0]
        return rounds.normal_errors(*of_day), None
    errors = rounds.tail_errors(release, 0, same, reach, clips.moments)
    before = reach_of(cast("PowerLaw", clips.tails[0]), size, *days.radii)
    return errors, rounds.tail_errors(release, 0, same, before, clips.moments)


def _day_mean(center: np.ndarray, spread: np.ndarray, errors: Errors, count: float) -> DayMean:
    of_clips = 0.0 if errors.clipped is None else errors.clipped[0]
    bias = np.maximum(of_clips, errors.unseen)
    return DayMean(center, errors.mean * spread, bias * spread, spread, count, errors.weight)


def _taken(errors: Errors) -> np.ndarray:
    """By clips, of variances in parts of them."""
    return np.zeros(len(errors.mean)) if errors.clipped is None else errors.clipped[1]


def _variance(errors: Errors) -> np.ndarray:
    """Of the errors of variances, in parts of them, without what clips take."""
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
