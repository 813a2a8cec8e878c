"""Rows: how parts of a table hold and read them, and exact functions of single rows.

The floor above the kernel, below the questions (`sklearn_dp._queries`). Nothing here releases
anything, and nothing here is released. Start reading at :mod:`.table`.
"""
