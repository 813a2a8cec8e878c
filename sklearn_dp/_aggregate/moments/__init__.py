"""Means and covariances without bounds: released ellipsoids, whitening, rounds of moments.

Start reading at :func:`.rounds.refine`. It imports `columns`, `shared` and `friendly`.
"""
