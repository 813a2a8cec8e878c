"""Questions about rows: what is summed over them, and what a unit changes in the sums.

The last floor that sees rows: algorithms have handles of a table (:mod:`.grids`), ask questions
of them, and get sealed answers. To add a release, write a class here, with its proof
(:mod:`._query`), and a case for it in `tests/query_cases.py`.
"""
