"""Seeded bugs of this package, beside those of `sklearn_dp.audit.mutants` that fit any estimator.

Importing this registers them all in `sklearn_dp.audit.MUTANTS`.
"""

from sklearn_dp.audit import MUTANTS

from . import building_blocks, kernel  # noqa: F401 - they register their mutants

__all__ = ["MUTANTS"]
