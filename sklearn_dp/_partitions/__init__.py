"""Tables outside of the memory of this process: who holds their parts, and how they are read.

:func:`engine_of` looks at the type of `X` and gives what a fit needs of it before it is paid for:
the columns, which are public, and an engine, which reads nothing until its first pass. There is one
module for each kind of place (`_dask`, `_spark`, `_ray`, and `_pieces` for this machine); what they
share is in `_check_part` (which parts are taken, and what errors tell) and `_steps` (what runs
where a part is).
"""

from ._check_part import Reason, quietly
from ._dispatch import engine_of, engine_of_parts, engine_with_targets, in_memory, in_parts
from ._input import EngineInput
from ._rowwise import InParts, check_columns, open_parts, opened_table, rowwise

__all__ = [
    "EngineInput", "InParts", "Reason", "check_columns", "engine_of", "engine_of_parts",
    "engine_with_targets", "in_memory", "in_parts", "open_parts", "opened_table", "quietly",
    "rowwise",
]  # fmt: skip
