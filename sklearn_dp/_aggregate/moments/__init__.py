"""Means and covariances without bounds: released ellipsoids, whitening, rounds of moments.

What lives here: what a released component is (:mod:`.ellipsoid`), exact moments of whitened rows
and their release (:mod:`.moment_releases`), the next guess from a release (:mod:`.estimates`), the
rounds that improve components so (:mod:`.rounds`), a first covariance from the friendly core of
blocks (:mod:`.covariance_core`), and released shapes as the matrices of scikit-learn
(:mod:`.ellipsoid`). `FriendlyCovariance` and `DPGaussianMixture` stand on it.

It imports `shared` and `friendly`. Start reading at :func:`.rounds.refine`.
"""
