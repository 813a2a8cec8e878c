"""Noise in shares: clients add it, and nobody has to be trusted with the exact sum.

Every client adds ``round(s Z)`` to its integers, with an ideal N(0, 1) draw Z of its own, and only
the sum over clients is seen. Of the clients whose shares are in the sum, at least `n` keep theirs
to themselves; the shares of all others are integers that the adversary knows and can subtract. So
what protects the sum is the noise

    S = round(s Z_1) + ... + round(s Z_n)

or a sum of more such shares. Its variance is n s^2 + O(n), but its law is not that of
``round(sqrt(n) s Z)``, so the theorem for one rounded Gaussian does not apply as it stands. What
does hold: with U_j uniform on [-1/2, 1/2] and all draws independent,

    S* = round(sqrt(n) s Z + U_1 + ... + U_(n-1))

is post-processing of an ideal Gaussian of variance n s^2, since ``v + S* = round(v + sqrt(n) s Z +
U_1 + ...)`` for an integer v; and S is so close to S* that the difference fits into a delta of
`SHARES_DELTA` for a release.

Proof. Let g be the density of s Z + U_1, and f that of sqrt(n) s Z + U_1 + ... + U_n. The law of
round(s Z) is P[i] = g(i), that of S* is Q[i] = f(i), and ``h(t) = exp(-s^2 t^2 / 2) sin(t / 2) /
(t / 2)`` and h^n are their Fourier transforms. By Poisson's summation formula the characteristic
functions of S and S* are, for abs(t) <= pi,

    p(t) = (sum_k h(t + 2 pi k))^n         q(t) = sum_k h(t + 2 pi k)^n.

For k != 0, abs(t + 2 pi k) >= (2 abs(k) - 1) pi, so the terms k != 0 of either sum add up to at
most e = 3 exp(-pi^2 s^2 / 2) where s >= 1 (abs(h) <= 1; the terms with abs(k) >= 2 are less than
exp(-4 pi^2) of those with abs(k) = 1). Since abs(a^n - b^n) <= n abs(a - b) for a, b in the unit
disc, abs(p - q) <= (n + 1) e, and so no probability of S differs by more than that from that of
S*. Summed over the 2 M + 1 integers up to M = T sqrt(n) s + n, outside which S* falls with
probability at most 2 exp(-T^2 / 2), the total variation distance is at most

    (2 M + 1) (n + 1) e + 2 exp(-T^2 / 2).

With T = 40, n <= 2^32 and 2^8 <= s <= 2^50 this is less than 2^-1150, and less than 2^-1118 for up
to 2^32 independent entries of a release. If each release of a fit (or of many fits) is replaced by
one within total variation t of it, whatever the earlier outputs are, the whole is replaced by one
within the sum of the t's; and if that one is (epsilon, delta)-DP, then the first is (epsilon, delta
+ (1 + exp(epsilon)) sum t)-DP. 2^-1118 (1 + exp(epsilon)) < 2^-100 for every epsilon up to 700.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._costs.numbers import round_up
from ..._costs.plan import Mechanism
from .._entries import exact_integers
from .._noise import MAX_SCALE, NoiseSource, noise_source
from .._session import Release, check_cost, lengths, positive_sensitivity
from .._trace import Event, active_trace, drawn
from .._units import Sealed

SHARES_DELTA = 2.0**-100
"""delta of a release whose noise comes in shares, for every epsilon up to 700."""

LEAST_SHARE = 2.0**8
"""Standard deviation of a share, in the steps that it is drawn in."""

MOST_SHARES = 2**32


@dataclass(frozen=True)
class ShareScale:
    """The law of the share that each client draws."""

    sigma: np.ndarray | float  # standard deviation of a share, in fine steps
    bits: int  # a fine step is 2**-bits of the step of the statistic


def share_scale(sensitivity: Any, rho: float, n_shares: int) -> ShareScale:
    """Scale of the shares of which `n_shares` together are the noise of a release worth rho, in
    steps so fine that a share is at least `LEAST_SHARE` of them. `sensitivity` is in steps of the
    statistic."""
    if not (1 <= n_shares <= MOST_SHARES and n_shares == int(n_shares)):
        raise ValueError(f"the number of shares must be between 1 and {MOST_SHARES}.")
    sensitivity = positive_sensitivity(sensitivity)
    # n shares of variance s^2 have n s^2 = sensitivity^2 / (2 rho) in all. Four roundings upward
    # are more than the three operations take away.
    sigma = sensitivity / math.sqrt(2 * check_cost("rho", rho) * n_shares)
    sigma = np.asarray(round_up(round_up(sigma)))
    # For a least one in [2**(e - 1), 2**e) the smallest power of two that takes it to LEAST_SHARE.
    bits = max(0, math.frexp(LEAST_SHARE)[1] - math.frexp(float(np.min(sigma)))[1])
    fine = np.ldexp(sigma, bits)  # exact
    if float(np.max(fine)) > MAX_SCALE:
        raise ValueError("the shares of the noise do not fit the integer grid.")
    return ShareScale(fine if fine.ndim else float(fine), bits)


def shared_noise(
    total: Any,
    sensitivity: Any,
    n_honest: int,
    given: int | None,
    rho: float,
    unit: Any,
    take_shares: Callable[[Any], Any],
) -> Release:
    """A sum with noise in shares; see :func:`release_shared`. `total` is in fine steps and has the
    shares of `given` clients; without noise, in steps, for None. ``take_shares(total)`` is the
    exact sum for an audit, and `total` itself otherwise."""
    sensitivity, total = positive_sensitivity(sensitivity), exact_integers(total)
    scale = share_scale(sensitivity, rho, n_honest)
    # Of n shares together, rounded up once more: the root and the product are two operations.
    sigma = round_up(scale.sigma * math.sqrt(n_honest))
    if given is None:
        value = total << scale.bits

        def draw(noise: NoiseSource) -> np.ndarray:
            # Nobody sees a share here, so one rounded Gaussian does what all of them would: it
            # has at least the variance that rho asks for, and needs none of the delta. To draw
            # the shares took a minute for 10**7 of them.
            return value + noise.rounded_gaussian(sigma, value.shape)
    else:
        # The exact sum is nobody's; an audit, which has noted the shares, can take them off.
        value = take_shares(total)

        def draw(noise: NoiseSource) -> np.ndarray:
            return total

    fine = np.asarray(sensitivity) * 2.0**scale.bits
    step = np.asarray(unit) * 2.0**-scale.bits
    n_shares = n_honest if given is None else given
    return Release(
        "gaussian",
        Mechanism.GAUSSIAN,
        value,
        fine,
        sigma,
        rho,
        draw,
        SHARES_DELTA,
        public={"unit": unit, "shares": n_shares / n_honest},
        unit=step,
    )


class NoiseShares:
    """A client's source of shares.

    Parameters
    ----------
    seed : int, optional
        None: the operating system's generator. An int: reproducible shares, for tests; they
        protect nothing against those who know the seed.
    name : str or int, default=""
        Of the client: with the same seed, clients of different names have independent shares.
    """

    def __init__(self, seed: int | None = None, name: str | int = "") -> None:
        self._seed, self._name = seed, name

    @property
    def seeded(self) -> bool:
        """True if the shares can be reproduced."""
        return self._seed is not None

    def draw(
        self, entry: str, number: int, sigma: float | np.ndarray, shape: tuple[int, ...]
    ) -> np.ndarray:
        """A share of the noise of a release.

        Parameters
        ----------
        entry : str
            Name of the vector.
        number : int
            Of the round: seeded shares of different rounds are independent.
        sigma : float or ndarray
            Standard deviations in fine steps, `LEAST_SHARE` at least.
        shape : tuple of int
            Of the vector, which is public.

        Returns
        -------
        share : ndarray of int64
            In fine steps, to be added to the client's integers.
        """
        # A source for each share: no bits are kept in between, where a machine could be cloned.
        noise = noise_source(self._seed, f"share|{self._name}|{int(number)}|{entry}")
        sigma = np.broadcast_to(np.asarray(sigma, dtype=np.float64), shape)
        if not np.all(sigma >= LEAST_SHARE):
            raise ValueError("the shares of the noise must be finer: the sum would not be private.")
        with drawn() as draws:
            share = noise.rounded_gaussian(sigma, shape)
        trace = active_trace()
        if trace is None:
            return share
        return trace.record(
            Event(
                "share",
                entry,
                np.zeros_like(share),
                None,
                sigma,
                0.0,
                {"client": self._name},
                share,
                draws=tuple(draws),
            )
        )


def release_shared(
    session: Any,
    entry: str,
    sealed: Sealed,
    *,
    n_honest: int,
    given: int | None = None,
    rho: float | None = None,
) -> np.ndarray:
    """Release a sum over clients that gets its noise from them, in shares.

    The sum is with the shares of `given` clients, a public number, in fine steps (see
    :func:`share_scale`); where it is None, the noise of `n_honest` shares is drawn here. The claim
    is in steps of the statistic. `n_honest` counts shares, besides that of the client whose data
    differ, that nobody else knows; a RuntimeError if there are not more than that in the sum.

    sqrt(2 rho)-GDP up to a delta of `SHARES_DELTA`, which that of the entry must hold for each use,
    for neighbors with the same clients: the proof is at the top of this module."""
    total, claim = session._opened(sealed), sealed.claim
    if given is not None and given <= n_honest:
        raise RuntimeError(
            f"only {given} clients have added their share of the noise; "
            f"n_honest={n_honest} requires at least {n_honest + 1}."
        )

    def without_shares(total: np.ndarray) -> Any:
        # Only an audit, which has seen every client draw, can tell the exact sum.
        return total if session._trace is None else total - session._trace.take_shares(entry)

    rho = session._cost(entry, rho)
    law = shared_noise(total, claim.l2, n_honest, given, rho, claim.unit, without_shares)
    return lengths(session._release(entry, law), law.unit)
