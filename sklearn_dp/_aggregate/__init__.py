"""Private building blocks: functions of (rows, session), in eight rooms.

`shared` and `columns` are for all; `friendly`, `kmeans`, `tuples`, `one_cluster` and `moments` hold
one family of algorithms each; `mixture` puts them together. Which room may import which stands in
`tests/test_architecture.py`.
"""
