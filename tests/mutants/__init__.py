"""Seeded bugs, each with the checks that must fail.

Bugs of any estimator are planted at what every estimator uses (the session, the noise source, the
base class): a sensitivity that is too small (`releases`), missing noise (`noise`), a fit that shows
what is no release (`contract`), and all of this behind a rare condition (`triggers`).

Bugs of this package alone: the law and the entropy of the sampler (`law`), the coding of groups
(`units`), charges and the ledger (`charging`, `accounting`), clips and counts (`kernel`), and the
algorithms (`building_blocks`).

Importing this registers them all in `MUTANTS`; `planting` plants them.
"""

from . import (  # noqa: F401 - they register their mutants
    accounting,
    building_blocks,
    charging,
    contract,
    kernel,
    law,
    noise,
    releases,
    triggers,
    units,
)
from .planting import MUTANTS

__all__ = ["MUTANTS"]
