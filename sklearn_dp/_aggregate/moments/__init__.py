"""Covariances without bounds: a released ellipsoid, whitening, friendly covariances.

Imports `shared` and `friendly`. Start reading at :mod:`.ellipsoid`.
"""
