"""E. Cohen et al., "Differentially-private clustering of easy instances", ICML 2021.

1. :mod:`.separated_balls`: do far balls partition nearly all k-tuples? What may be done after that.
2. :mod:`.k_averages`: PrivatekAverages, averages of the points in each ball, clipped to boxes.
3. :mod:`.noisy_centers`: PrivatekNoisyCenters, the centers of one good tuple with noise.
4. :mod:`.k_tuple_mixture`: PrivatekGMM, a mixture from the k-tuples of half of the rows.

1 to 3 are aggregators of `_aggregate/tuples/stage.py`. Neither has been seen to win over its
default, a friendly core of the tuples.
"""
