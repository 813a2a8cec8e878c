"""The former place of :mod:`sklearn_dp._rows.sparse_rows`, for rooms that are still to be moved."""

from ..._rows.sparse_rows import *  # noqa: F403
