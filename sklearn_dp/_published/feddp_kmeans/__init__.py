"""J. Scott et al., "Differentially private federated k-means ... server-side data", ICML 2025.

1. :mod:`.rounds`: the paper's split of the budget, and its rules for the start and for averages.
2. :mod:`.theory`: the algorithms of its theorems; :func:`.theory.cluster` is algorithm 5.

1 is ``FederatedDPKMeans(method="paper")``; nothing but tests calls 2.
"""
