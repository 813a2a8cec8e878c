"""The former place of :mod:`sklearn_dp._rows.quantized`, for rooms that are still to be moved."""

from ..._rows.quantized import *  # noqa: F403
