"""G. Kamath et al., "... learning mixtures of separated Gaussians", NeurIPS 2019.

1. :mod:`.spherical`: algorithm 1 (PEGME), spherical components in public bounds, and exact
   coordinates along released principal axes.
2. :mod:`.terrific`: terrific balls about released candidates, and about data points, as published.
3. :mod:`.partition`: algorithm 3 (RPGMP), cuts by terrific balls.

The result is a label for each row; `_aggregate/mixture` estimates the components from there.
"""
