"""Questions about rows: what is summed over them, and what a unit changes in the sums.

The floor above the rows, and the last one that sees them. A question is a small class with public
parameters (:mod:`._query`); it is asked of a handle (:mod:`.handles`), which is all that algorithms
have of a table; the answer is sealed. To add a release, write a class here, with its proof, and a
case for it in `tests/query_cases.py`.
"""
