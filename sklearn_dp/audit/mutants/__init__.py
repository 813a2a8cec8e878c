"""Seeded bugs that fit any estimator: what patches the session, its noise and the base class."""

from . import (  # noqa: F401 - they register their mutants
    accounting,
    contract,
    law,
    noise,
    releases,
    triggers,
)
