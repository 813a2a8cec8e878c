"""E. Cohen et al., "Differentially-private clustering of easy instances", ICML 2021.

:mod:`.k_tuple_mixture`: PrivatekGMM, a mixture from the k-tuples of half of the rows. Its other
parts are composite questions: `_queries.separated_balls`, `k_averages` and `noisy_centers`, two
aggregators of `_aggregate/tuples/stage.py`. Neither has been seen to win over its default, a
friendly core of the tuples.
"""
