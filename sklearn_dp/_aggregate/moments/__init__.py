"""Covariances without bounds: a released ellipsoid, whitening, friendly covariances.

Imports `shared`. Start reading at :mod:`.ellipsoid`.
"""
