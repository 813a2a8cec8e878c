"""Friendly cores and the averages built on them (the FriendlyCore paper).

An element is kept if it agrees with more than half of the others; then any two that are kept have a
common friend, so a noisy average of them needs noise for their distance, not for how far from the
origin they are. Start reading at :mod:`..._queries.averages`: who is whose friend, and the
filters.
:mod:`.refine` is that of what a filter kept; :mod:`.mean` the mean of points at an unknown place,
the best that is made of these. Imports the kernel and `shared`.
"""
