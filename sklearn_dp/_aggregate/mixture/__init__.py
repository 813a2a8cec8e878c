"""Separated Gaussian mixtures: parts by several routes, then private EM.

Imports the rooms below it. Start reading at :func:`.fit.fit_mixture`.
"""
