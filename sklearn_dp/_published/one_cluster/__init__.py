"""K. Nissim et al., "Locating a small cluster privately", PODS 2016.

1. :mod:`.rec_concave`: RecConcave, the published choice of a radius.
2. :mod:`.good_center`: GoodCenter, the published way to a center.
3. :mod:`.int_point`: the reduction of theorem 5.3, an interior point by a search for a ball.

`_aggregate/one_cluster` has GoodRadius and what is done by default.
"""
