"""Seeded bugs that fit any estimator, also one that a user has written.

They stand for mistakes that the author of an estimator can make, or that an audit of that estimator
has to be able to see: a sensitivity that is too small (`releases`), noise that is not there
(`noise`), a fit that shows what is no release (`contract`), and all of this behind a rare condition
(`triggers`). Since nobody's code is known here, they are planted at what every estimator goes
through: the session, the noise source and the base class. An estimator that does not use what is
broken does not reach the mutant.

Bugs that only this package can have (of the sampler, of the accounting, of the building blocks)
live with its tests, in `tests/mutants`. Importing this package registers the mutants in `MUTANTS`.
"""

from . import (  # noqa: F401 - they register their mutants
    contract,
    noise,
    releases,
    triggers,
)
