"""The former place of :mod:`sklearn_dp._rows.row_sums`, for rooms that are still to be moved."""

from ..._rows.row_sums import *  # noqa: F403
