"""Gaussian mixtures: a released partition of the rows, then private EM.

What lives here: the plan of a fit (:mod:`.mixture_plan`) and the fit (:mod:`.fit`). The k-means
engine of the room `kmeans` gives each row a component. The published ways to do so, for separated
components, are in `_published/separated_gaussians` ("partition") and `_published/easy_instances`
("k_tuples"). All of them take a :class:`.parts.MixtureContext` and give a :class:`.parts.Parts`.

It imports `shared`, `kmeans`, `tuples` and `moments`. Start reading at :func:`.fit.fit_mixture`.
"""
