"""The former place of :mod:`sklearn_dp._rows.table`, for rooms that are still to be moved."""

from ..._rows.table import *  # noqa: F403
