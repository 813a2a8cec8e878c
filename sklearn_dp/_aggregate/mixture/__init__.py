"""Gaussian mixtures: a released partition of the rows, then private EM.

Start reading at :func:`.fit.fit_mixture`. The k-means engine gives each row a component; the
published ways to do so, for separated components, are in `_published/separated_gaussians` and
`_published/easy_instances`. It imports `shared`, `kmeans`, `tuples` and `moments`.
"""
