"""The k-means engine: a noisy cell tree, weighted k-means on its leaves, private Lloyd iterations.

Imports `shared`. Start reading at :func:`.engine.fit_engine`, a table of contents.
"""
