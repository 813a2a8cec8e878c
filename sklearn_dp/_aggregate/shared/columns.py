"""The former place of :mod:`sklearn_dp._queries.coordinates`, for rooms still to be moved."""

from ..._queries.coordinates import Columns, ColumnSource  # noqa: F401
