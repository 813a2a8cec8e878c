"""The search for a small ball with many points (the 1-cluster paper).

Imports `shared` and `friendly`. Start reading at :func:`.search.fit_one_cluster`.
"""
