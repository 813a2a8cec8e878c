"""Rows: how parts of a table hold and read them, and exact functions of single rows. Start at
:mod:`.table`."""
