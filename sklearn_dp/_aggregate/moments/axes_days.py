"""Principal axes of rows that come day by day: a later day is one release of moments.

What is known of the covariance C decides the noise of the next day. With rows mapped by the inverse
root of a matrix W, and clipped there, the noise of a direction is in proportion to the length of a
row there, whose mean square is tr(W^-1 C), and to the width of W in that direction. Of W with the
axes of C the sum of the squared noises of all entries is (tr(W) tr(W^-1 C))^2, which is least where
W is the root of C (Cauchy-Schwarz). A ball, W = I, gives narrow directions the noise of wide ones;
whitening, W = C, makes all rows equally long, and drowns wide directions in the length of many
narrow ones. What is hidden in the noise counts as wide as the noise.

Days are averaged as those of covariances are (:mod:`.joined`), about the mean of all of them.
Nothing is undone that a clip takes: rows there have no normal law of one scale.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from ..._privacy._session import PrivacySession
from ..._queries.handles import GridRows
from ..friendly.days import DayMean, Means
from ..shared.axes import noise_edge
from .ellipsoid import NARROWEST, Ellipsoid, normal_quantile, symmetric
from .estimates import noise_norm, within
from .joined import LIKE, DivisorRatio, about, averaged, stretch, with_sampling
from .moment_releases import DISTANCES, MOMENTS, MomentRelease
from .rounds import MomentRounds
from .tails import Clips, Distances, last_clips

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
