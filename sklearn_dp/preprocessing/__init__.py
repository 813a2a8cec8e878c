"""Columns made comparable: by public bounds and categories at no cost, or by private statistics."""

from ._dp_one_hot_encoder import DPOneHotEncoder
from ._dp_quantiles import DPQuantiles, DPRobustScaler
from ._dp_standard_scaler import DPStandardScaler
from ._public_encoder import PublicEncoder
from ._scaling import PublicScaler
from ._schema import Schema

__all__ = [
    "DPOneHotEncoder",
    "DPQuantiles",
    "DPRobustScaler",
    "DPStandardScaler",
    "PublicEncoder",
    "PublicScaler",
    "Schema",
]
