"""Separated Gaussian mixtures: a released partition of the rows, then private EM.

What lives here: the plan of a fit (:mod:`.plan`), the fit (:mod:`.fit`), and the ways to give each
row a component: the k-means engine of the room `kmeans`, k-tuples of block means
(:mod:`.k_tuples`), cuts by terrific balls (:mod:`.partition`, whose nodes are in :mod:`.tree` and
whose balls in :mod:`.terrific` and :mod:`.terrific_points`), and small balls one after the other
(:mod:`.spherical`). All of them take a :class:`.parts.MixtureContext` and give a
:class:`.parts.Parts`.

It imports `shared`, `friendly`, `kmeans`, `tuples`, `one_cluster` and `moments`. Start reading at
:func:`.fit.fit_mixture`.
"""
