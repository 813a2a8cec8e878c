"""G. Kamath et al., "Differentially private algorithms for learning mixtures of separated
Gaussians", NeurIPS 2019.

The result is a label for each row: :mod:`.spherical` is algorithm 1 (PEGME), in public bounds,
:mod:`.partition` algorithm 3 (RPGMP), cuts by the balls of :mod:`.terrific`.
"""
