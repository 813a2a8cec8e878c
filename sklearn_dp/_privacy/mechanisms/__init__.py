"""Laws of noise and of selection: the releases, their costs, the proofs.

Those of Gaussian noise are in :mod:`.._session`, which every fit needs.

A function here checks the premises of its proof and gives a :class:`Release`: everything about the
release but its noise, which a session adds once it has been paid. A premise that does not hold is a
bug, and ends the fit; whether it holds never depends on the data of a program that is right.

A new law also needs a member of `Mechanism` in `_costs/plan.py` (unless one describes it), a
method of a few lines in `_privacy/_session.py`, and its kind in `audit/_laws.py`: its distance and
its cost from the theorem and not from the code here. A new sampler belongs into
`_privacy/_noise.py`; first ask whether the noise is post-processing of one that is there. Tests:
each premise broken, the bound of the proof by exact sums over two neighbors, the law of the output,
and sensitivities above 2^53.
"""
