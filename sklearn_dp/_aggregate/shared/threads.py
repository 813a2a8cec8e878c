"""The former place of :mod:`sklearn_dp._rows.threads`, for rooms that are still to be moved."""

from ..._rows.threads import *  # noqa: F403
