"""The former place of :mod:`sklearn_dp._rows.table_units`, for rooms that are still to be moved."""

from ..._rows.table_units import *  # noqa: F403
