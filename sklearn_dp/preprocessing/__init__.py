"""Columns made comparable: by public bounds and categories at no cost, or by private statistics."""

from ._public_encoder import PublicEncoder
from ._public_scaler import PublicScaler

__all__ = ["PublicEncoder", "PublicScaler"]
