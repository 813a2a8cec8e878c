"""Columns: where their rows are, how far each is clipped, and their means and deviations.

Every estimator that adds up rows of a table reads its columns here. Start reading at
:func:`.moments.fit_moments`; :mod:`.look` finds columns without public ends, :mod:`.vectors` is the
one release that all means are made of. Imports the kernel and `shared`.
"""
