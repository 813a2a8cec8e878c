"""Tables outside of the memory of this process: who holds their parts, and how they are read.

:func:`engine_of` looks at the type of `X` and gives the columns, which are public, and an engine,
which reads nothing until its first pass. There is one module for each kind of place, which is
imported for such a table only.
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
