"""Friendly cores and the averages built on them (the FriendlyCore paper).

Imports only the kernel. Start reading at :mod:`.core` (who is whose friend), then :mod:`.average`.
"""
