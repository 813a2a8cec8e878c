"""The former place of :mod:`sklearn_dp._rows.pieces`, for rooms that are still to be moved."""

from ..._rows.pieces import *  # noqa: F403
