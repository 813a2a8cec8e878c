"""Seeded bugs of the kernel's mechanisms."""

from dataclasses import replace

import numpy as np
import toy_releases

from sklearn_dp._privacy import _grid, _session
from sklearn_dp._privacy._grid import Domain
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import opened

from .planting import mutant


@mutant("clip skipped", "check_replay", _grid, "clip_integer_rows")
def _(original):
    return lambda rows, limit, norms_squared=None, *, own=False: rows


@mutant("clip limit from the data", "check_replay", toy_releases, "vector_sum")
def _(original):
    def vector_sum(session, entry, rows, limit, units, **options):
        largest = float(np.sqrt(np.square(rows).sum(axis=1).max(initial=1.0)))
        return original(session, entry, rows, min(limit, largest), units, **options)

    return vector_sum


@mutant("raw count used", "check_replay", toy_releases, "count")
def _(original):
    return lambda session, entry, units, rho=None: float(units.n_rows)


@mutant("raw histogram used", "check_replay", toy_releases, "noisy_counts")
def _(original):
    return lambda session, entry, counts, units, rho=None: counts * units.step


@mutant("a sealed answer as it is", "check_replay", PrivacySession, "release")
def _(original):
    def release(self, entry, sealed, *, rho=None):
        return opened(sealed, self.plan) * np.asarray(sealed.claim.unit, dtype=float)

    return release


@mutant("cells published by their true count", "check_noise_law", _session, "sparse")
def _(original):
    def sparse(*args, **options):
        release = original(*args, **options)

        def draw(noise):
            codes, counts = release.value
            return codes, counts + noise.rounded_gaussian(release.scale, codes.shape)

        return replace(release, draw=draw)

    return sparse


@mutant("rows out of bounds refused", "check_rows_out_of_bounds_are_clipped", Domain, "center_rows")
def _(original):
    def center_rows(self, X):
        if np.abs(X - self.center).max(initial=0.0) > self.radius:
            raise ValueError("X exceeds bounds.")
        return original(self, X)

    return center_rows
