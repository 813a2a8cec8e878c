"""Seeded bugs of this package, beside those of `sklearn_dp.audit.mutants` that fit any estimator.

What only this package can get wrong: the law and the entropy of the sampler (`law`), the coding of
groups (`units`), charges and the ledger (`charging`, `accounting`), clips and counts (`kernel`),
and the algorithms (`building_blocks`). An author of another estimator cannot make these mistakes.

Importing this registers them all in `sklearn_dp.audit.MUTANTS`.
"""

from sklearn_dp.audit import MUTANTS

from . import (  # noqa: F401 - they register their mutants
    accounting,
    building_blocks,
    charging,
    kernel,
    law,
    units,
)

__all__ = ["MUTANTS"]
