"""Gaussian mixtures: a released partition of the rows, then private EM: see
:func:`.fit.fit_mixture`."""
