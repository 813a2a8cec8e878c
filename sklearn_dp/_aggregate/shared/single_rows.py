"""The former place of :mod:`sklearn_dp._rows.single_rows`, for rooms that are still to be moved."""

from ..._rows.single_rows import *  # noqa: F403
