"""Friendly cores and the averages built on them (the FriendlyCore paper).

Imports the kernel and `shared`. Start reading at :mod:`.core` (who is whose friend), then
:mod:`.average`.
"""
