"""GoodRadius: a radius r at which some ball holds nearly t points, at most four times too large.

The score of a radius is the mean L(r) of the t largest counts of points within it of a point, each
cut at t (Nissim, Stemmer and Vadhan, PODS 2016, algorithm 1). It does not decrease with r, and one
point moves it by less than 2. A radius at which L rises to t is chosen; only its index is released.

With L(r_j) >= t - loss, a ball of radius r_j about some point holds t - loss points. With
L(r_before) < t no ball of radius r_before / 2 holds t: each of its points would have t points
within r_before. On a linear grid r_before is half of r_j, on the default one r_j / sqrt(2).

What the choice loses, in points at 95% confidence, with m radii: 8 / epsilon log(m / 0.05) for the
exponential mechanism ("exponential", the default); 4 sqrt(s log(s / 0.05) / rho) for a binary
search of s = log2(m) steps; 32 / epsilon log(2 m / 0.05) for AboveThreshold. The published choice
is "rec_concave" (`_published/one_cluster`), which has not been seen to win.

Beyond some ten thousand points the radius is chosen on a sample, by which a unit is protected
better (:func:`..._privacy._composite_mechanism.on_a_sample`): less noise.
"""

import math
from dataclasses import dataclass

from ..._costs.accounting import pure_dp_epsilon
from ..._costs.plan import Mechanism, PlanEntry
from ..._privacy._composite_mechanism import on_a_sample
from ..._privacy._pure_releases import choose, first_above
from ..._privacy._sealed import entry_of
from ..._privacy._session import PrivacySession
from ..._published.one_cluster.rec_concave import RecConcave, rec_concave_steps
from ..._queries.balls import Crossing
from ..._queries.handles import GridRows
from ..._queries.pairs import LinearRadii, LogRadii, Radii, RadiusScores
from ..._queries.samples import Coins

RADIUS_METHODS = ("exponential", "binary_search", "above_threshold", "rec_concave")
GRIDS: dict[str, type[LogRadii] | type[LinearRadii]] = {"log": LogRadii, "linear": LinearRadii}
_LEAST = {"log": 2.0**-15, "linear": 2.0**-11}  # of the public radius
_SAFE = 1 - 1e-12
BETA = 0.05  # of the utility statements; never in a noise scale


@dataclass(frozen=True)
class Radius:
    """A released radius."""

    square: float  # an integer number of squared steps
    loss: float  # points that may be missing in its ball with 95% confidence


def radii_of(grid: str, ball: float, least: float | None = None) -> Radii:
    """The public grid, "log" or "linear", up to 2 `ball`; `least` is the second smallest radius."""
    return GRIDS[grid](_LEAST[grid] * ball if least is None else least, 2 * ball)


def exponential_epsilon(rho: float) -> float:
    """epsilon of an exponential mechanism, of bounded range, that costs `rho`: epsilon^2 / 8."""
    return math.sqrt(8 * rho) * _SAFE


def good_radius_entries(
    method: str, rho: float, delta: float, name: str = "radius"
) -> tuple[PlanEntry, ...]:
    """Plan entries of :func:`good_radius`; only "rec_concave" can fail, so only it takes delta."""
    mechanism = {
        "exponential": Mechanism.EXPONENTIAL,
        "binary_search": Mechanism.GAUSSIAN,
        "above_threshold": Mechanism.ABOVE_THRESHOLD,
        "rec_concave": Mechanism.REC_CONCAVE,
    }[method]
    uses = 1 if method in ("exponential", "above_threshold") else None
    delta, words = delta if method == "rec_concave" else 0.0, "2 of the mean of t counts"
    return (PlanEntry(name, mechanism, rho, delta, uses=uses, sensitivity=words),)


def good_radius(
    session: PrivacySession,
    entry: str,
    rows: GridRows,
    t: int,
    radii: Radii,
    method: str,
    coins: Coins | None = None,
) -> Radius | None:
    """Choose a radius of a public grid by all of the entry; None only with "rec_concave"."""
    paid = session if coins is None else on_a_sample(session, entry, coins.rate)
    index, loss = getattr(_Choice(paid, entry, rows, t, radii, coins), method)()
    return None if index is None else Radius(float(radii.squares[index]), loss / t)


@dataclass(frozen=True)
class _Choice:
    """The choice of a radius. Each selector returns an index and what t L may be short of t^2, a
    statement about utility: no noise scale depends on it."""

    session: PrivacySession
    entry: str
    rows: GridRows
    t: int
    radii: Radii
    coins: Coins | None

    @property
    def n_radii(self) -> int:
        """Their number."""
        return len(self.radii.squares)

    @property
    def rho(self) -> float:
        """What the entry has left."""
        return self.session.remaining(self.entry)

    @property
    def most(self) -> int:
        """The most that t L may move by."""
        return 2 * self.t - 1

    def ask(self, points: float) -> tuple[RadiusScores.Answer, int]:
        """t L of each radius, and a quality that is high where it reaches t^2 but for a slack."""
        slack = min(math.ceil(self.t * points), self.t * self.t // 2)
        crossing = Crossing(self.t * self.t, slack)
        return self.rows.ask(RadiusScores(self.radii, self.t, crossing, self.coins)), slack

    def exponential(self) -> tuple[int, float]:
        """By the quality, which is at least half of the slack where the scores cross t^2."""
        epsilon = exponential_epsilon(self.rho)
        loss = 8 / epsilon * math.log(self.n_radii / BETA)
        quality = self.ask(loss)[0].quality
        return choose(self.session, self.entry, quality, epsilon=epsilon), loss * self.t

    def binary_search(self) -> tuple[int, float]:
        """First radius whose noisy score reaches t^2 less what noise may hide in any step."""
        steps = max(1, (self.n_radii - 1).bit_length())
        rho = self.rho / steps * _SAFE
        margin = self.most / math.sqrt(2 * rho) * math.sqrt(2 * math.log(steps / BETA))
        answer, slack = self.ask(margin / self.t)
        low, high = 0, self.n_radii - 1
        while low < high:
            middle = (low + high) // 2
            noisy = self.session.release(self.entry, entry_of(answer.scores, middle), rho=rho)
            reached = noisy >= self.t * self.t - slack
            low, high = (low, middle) if reached else (middle + 1, high)
        return high, 2 * margin

    def above_threshold(self) -> tuple[int, float]:
        """First radius whose noisy score is above a noisy threshold; the last one if none is."""
        epsilon = pure_dp_epsilon(self.rho)
        margin = 16 / epsilon * math.log(2 * self.n_radii / BETA)
        answer, slack = self.ask(margin)
        level = self.t * self.t - slack
        index = first_above(self.session, self.entry, answer.scores, level, epsilon=epsilon)
        return (self.n_radii - 1 if index is None else index), 2 * margin * self.t

    def rec_concave(self) -> tuple[int | None, float]:
        """RecConcave with a promise of half the slack, by half of rho."""
        plan, (choices, leads) = self.session.plan[self.entry], rec_concave_steps(self.n_radii)
        share = self.rho / 2 if leads else self.rho
        epsilon = exponential_epsilon(share / choices)
        lead = pure_dp_epsilon(share / max(leads, 1))
        delta = plan.delta / max(leads, 1) * _SAFE
        of_leads = 16 / 3 / lead * (math.log(1 / (4 * BETA * delta)) + 1) if leads else 0.0
        loss = 4 * self.most * max(16 / epsilon * math.log(16 / BETA), of_leads)
        answer, slack = self.ask(loss / self.t)
        steps = RecConcave(self.session, self.entry, epsilon, lead, delta)
        return steps.index(answer.quality, slack // 2), loss
