"""Tables outside of the memory of this process: who holds their parts, and how they are read.

:func:`engine_of` looks at the type of `X` and gives what a fit needs of it before it is paid for:
the columns, which are public, and an engine, which reads nothing until its first pass. There is one
module for each kind of place (`_dask`, `_spark`, `_ray`, and `_pieces` for this machine), which is
imported for such a table only. What they share is in `_sources` and `_steps`: which parts are
taken, what errors tell, and what runs where a part is.
"""

from ._dispatch import (
    InputInParts,
    engine_of,
    engine_of_parts,
    engine_with_targets,
    in_memory,
    in_parts,
)
from ._rowwise import InParts, answers, check_columns, rowwise

__all__ = [
    "InParts", "InputInParts", "answers", "check_columns", "engine_of", "engine_of_parts",
    "engine_with_targets", "in_memory", "in_parts", "rowwise",
]  # fmt: skip
