"""One module for each law of noise or selection: the release, its cost, the proof.

A function here checks the premises of its proof and gives a :class:`Release`: everything about the
release but its noise, which a session adds once it has been paid. A premise that does not hold is a
bug, and ends the fit; whether it holds never depends on the data of a program that is right.
"""
