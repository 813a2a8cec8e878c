"""The former place of :mod:`sklearn_dp._rows.rows`, for rooms that are still to be moved."""

from ..._rows.rows import *  # noqa: F403
