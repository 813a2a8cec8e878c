"""A former place, for rooms that are still to be moved: see :mod:`sklearn_dp._queries.samples`."""

from ..._queries.samples import *  # noqa: F403
