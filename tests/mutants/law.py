"""Noise of the right variance and the wrong law, dependent noise, noise that was seen before."""

import os
import time
from functools import partial
from itertools import count
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import log_ndtr, ndtr

from sklearn_dp._privacy._noise import NoiseSource
from sklearn_dp._privacy._session import PrivacySession

from .planting import mutant

_law = partial(
    mutant, killed_by="check_kernel_noise", owner=NoiseSource, attribute="rounded_gaussian"
)
_laplace = partial(
    mutant, killed_by="check_kernel_noise", owner=NoiseSource, attribute="rounded_laplace"
)
_entropy = partial(
    mutant, killed_by="check_noise_has_entropy", owner=NoiseSource, attribute="__init__"
)


def _of_noise(change):
    """A change of what was drawn: ``change(noise, scale)`` for arrays of at least one number."""

    def wrap(original):
        def rounded(self, scale, size=None):
            noise = original(self, scale, size)
            changed = change(np.array(noise, dtype=np.float64), np.asarray(scale, dtype=np.float64))
            return np.rint(changed).astype(np.int64).reshape(np.shape(noise))

        return rounded

    return wrap


def _tied(place):
    """A change of the flat noise, in place."""

    def change(noise, scale):
        z = np.ravel(noise / scale)
        place(z)
        return z.reshape(np.shape(noise)) * scale

    return _of_noise(change)


def _uniform(noise, scale):
    return (2 * ndtr(noise / scale) - 1) * np.sqrt(3) * scale


def _laplace_of_gaussian(noise, scale):
    return -np.sign(noise) * (log_ndtr(-np.abs(noise / scale)) + np.log(2)) * scale / np.sqrt(2)


for _name, _change in {
    "noise is a coin flip of sigma": lambda noise, scale: np.where(noise >= 0, scale, -scale),
    "noise is uniform": _uniform,
    "noise is Laplace of the same variance": _laplace_of_gaussian,
    "noise clamped at 3 sigma": lambda noise, scale: np.clip(noise, -3 * scale, 3 * scale),
    "noise clamped at 4 sigma": lambda noise, scale: np.clip(noise, -4 * scale, 4 * scale),
    "noise in steps of half a sigma": lambda noise, scale: np.rint(2 * noise / scale) * scale / 2,
    "noise with a heavier tail on one side": lambda noise, scale: np.where(
        noise > 0, 1.2 * noise, 0.75 * noise
    ),
    "noise of a mixture: a third has a tenth of the scale": lambda noise, scale: (
        np.where(np.abs(noise) % 3 == 0, 0.1, 1.22) * noise
    ),
}.items():
    _law(_name)(_of_noise(_change))

for _name, _change in {
    "Laplace noise clamped at 5 scales": lambda noise, scale: np.clip(noise, -5 * scale, 5 * scale),
    "Laplace noise is uniform": lambda noise, scale: (
        np.sign(noise) * (1 - np.exp(-np.abs(noise / scale))) * np.sqrt(6) * scale
    ),
    "Laplace noise of one sign": lambda noise, scale: np.abs(noise),
}.items():
    _laplace(_name)(_of_noise(_change))


# -- dependence ------------------------------------------------------------------------------------


def _halves(z, sign):
    half = len(z) // 2
    z[len(z) - half :] = sign * z[:half]


def _thirds(z):
    third = len(z) // 3
    z[third : 2 * third] = z[:third]


def _mirrored(z):
    z[len(z) - len(z) // 2 :] = z[: len(z) // 2][::-1]


def _pairs(z):
    z[1::2] = z[:-1:2] if len(z) % 2 else z[::2]


def _averaged(z):
    z[1:] = (z[1:] + z[:-1]) / np.sqrt(2)


def _uneven(z):
    z[::2] *= 1.35
    z[1::2] *= 0.42


for _name, _place in {
    "halves of noise are antithetic": partial(_halves, sign=-1),
    "halves of noise are equal": partial(_halves, sign=1),
    "thirds of noise are equal": _thirds,
    "noise is its own mirror image": _mirrored,
    "noise in equal pairs": _pairs,
    "noise is a moving average": _averaged,
    "odd places get the noise of even ones": _uneven,
}.items():
    _law(_name)(_tied(_place))
_law("the first number of noise is nothing", killed_by="check_noise_law")(
    _tied(lambda z: z[:1].fill(0))
)


@mutant("noise leans to the value", "check_noise_law", PrivacySession, "_record")
def _(original):
    def record(self, event):
        if event.kind == "gaussian":
            signs = np.where(np.asarray(event.value) < 0, -1, 1)
            event.output = event.value + signs * np.abs(event.output - event.value)
        return original(self, event)

    return record


# -- noise seen before -----------------------------------------------------------------------------


@_law("a stream that repeats every 6 calls", killed_by="check_noise_law")
def _(original):
    calls = count()
    return lambda self, sigma, size=None: original(NoiseSource(next(calls) % 6), sigma, size)


@_law("the noise of a fit begins anew with the third call")
def _(original):
    calls = WeakKeyDictionary()

    def rounded(self, sigma, size=None):
        calls[self] = calls.get(self, 0) + 1
        source = NoiseSource(self._seed or 0) if calls[self] % 3 == 1 else self
        return original(source, sigma, size)

    return rounded


@_law("a noise is taken back by the next")
def _(original):
    kept = []

    def rounded(self, sigma, size=None):
        noise = original(self, sigma, size)
        if kept and np.size(kept[-1]) >= np.size(noise):
            z = np.ravel(kept.pop())[: np.size(noise)].reshape(np.shape(noise))
            return np.rint(-z * np.asarray(sigma)).astype(np.int64)
        kept.append(noise / np.asarray(sigma))
        return noise

    return rounded


def _seeded_by(seed):
    """Noise without a seed comes from ``seed()``, and is told as the system's."""

    def wrap(original):
        def init(self, given=None, tag="noise"):
            original(self, seed() if given is None else given, tag)

        return init

    return wrap


_entropy("noise from a 16-bit seed, told as the system's")(
    _seeded_by(lambda: int.from_bytes(os.urandom(2), "big"))
)
_entropy("noise from a 12-bit seed, told as the system's")(
    _seeded_by(lambda: int.from_bytes(os.urandom(2), "big") >> 4)
)
_entropy("noise from the clock")(_seeded_by(lambda: int(time.time() * 20)))
_entropy("noise from the process id")(_seeded_by(os.getpid))
_START, _FITS = int.from_bytes(os.urandom(16), "big"), count()
_entropy("forked processes share a stream")(_seeded_by(lambda: _START + next(_FITS)))
