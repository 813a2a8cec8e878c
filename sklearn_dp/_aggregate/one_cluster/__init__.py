"""The search for a small ball with many points (the 1-cluster paper).

Start reading at :func:`.search.fit_one_cluster`: how small a ball with t points can be
(:mod:`.radius`), the first ball (:mod:`.center`), and those that follow (:mod:`.balls`). The
published choices are in `_published/one_cluster`. Imports `shared`.
"""

MOST_POINTS = 2**30
"""In a ball that is looked for, t: scores of a radius are at most t**2."""
