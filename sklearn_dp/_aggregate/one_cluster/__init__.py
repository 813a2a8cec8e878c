"""The search for a small ball with many points (the 1-cluster paper): see
:func:`.search.fit_one_cluster`."""

MOST_POINTS = 2**30
"""In a ball that is looked for, t: scores of a radius are at most t**2."""
