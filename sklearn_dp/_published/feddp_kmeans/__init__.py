"""J. Scott et al., "Differentially private federated k-means ... server-side data", ICML 2025.

1. :mod:`.split`: the paper's split of the budget.
2. :mod:`.rounds`: its rules for the start and for averages.
3. :mod:`.theory`: the algorithms of its theorems; :func:`.theory.cluster` is algorithm 5.

1 and 2 are ``FederatedDPKMeans(method="paper")``; nothing but tests calls 3.
"""
