"""E. Cohen et al., "Differentially-private clustering of easy instances", ICML 2021.

:mod:`.k_tuple_mixture`: PrivatekGMM. Its other parts are composite questions:
`_queries.separated_balls`, `k_averages` and `noisy_centers`. Neither has been seen to win over a
friendly core of the tuples.
"""
