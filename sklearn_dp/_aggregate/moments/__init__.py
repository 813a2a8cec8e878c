"""Means and covariances without bounds: released ellipsoids, whitening, rounds of moments.

Start reading at :func:`.rounds.refine`. A first covariance comes from the friendly core of blocks
(:mod:`.covariance_core`). It imports `shared` and `friendly`.
"""
