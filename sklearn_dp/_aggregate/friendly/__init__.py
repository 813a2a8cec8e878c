"""Friendly cores and the averages built on them (the FriendlyCore paper).

An element is kept if it agrees with more than half of the others; then any two that are kept have a
common friend, so a noisy average of them needs noise for their distance, not for how far from the
origin they are.

* :mod:`.core`: who is whose friend, and the filters. Start reading here.
* :mod:`.average`: the average of what a filter kept, and the search for the radius of friends.
* :mod:`.mean`: the mean of points at an unknown place, the best that is made of these: ways to a
  first center (:mod:`.mean_routes`), which of them to take (:mod:`.mean_routes`), and noisy means
  about a center (:mod:`.refine`). :mod:`.points` is where the points are, :mod:`.mean_facts` holds
  what these pass to each other.

Imports the kernel and `shared`. Users: `FriendlyMean`, k-tuples (:mod:`..tuples`), covariances
(:mod:`..moments`), small balls (:mod:`..one_cluster`).
"""
