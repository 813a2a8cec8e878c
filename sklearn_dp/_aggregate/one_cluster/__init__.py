"""The search for a small ball with many points (the 1-cluster paper).

* :mod:`.search`: the whole search; start reading at :func:`.search.fit_one_cluster`.
* :mod:`.radius`: how small a ball with t points can be, from the counts of :mod:`.pair_counts`;
  :mod:`.radius` for many points.
* :mod:`.center`: the first ball, a box of a random grid. :mod:`.balls`: means and radii of the
  balls that follow.

The published choices of radius and center are in `_published/one_cluster`. Imports `shared` and
`friendly`.
"""
