"""Questions about those rows only that an earlier step has left active."""

from dataclasses import replace

import numpy as np

from .._privacy._integers import exact_integers
from .._privacy._sealed import Claim
from .._privacy._units import UnitFacts, Units
from .._rows.table import Part
from ._query import Facts, Query

ACTIVE = "active"
"""Name, in the state of a part, of which of its rows are active; all are, where it is not."""


class Active(Query):
    """A question about the active rows, each of which is a unit of weight one; others count as if
    they were not there."""

    query: Query

    def on(self, part: Part) -> tuple[Part, tuple]:
        units, active = Units(part.units.n_rows), part.state.get(ACTIVE)
        units.weights = (
            np.ones(units.n_rows, np.int64) if active is None else exact_integers(active)
        )
        return part, self.query.on(replace(part, units=units))[1]

    def exact(self, sums: tuple) -> tuple:
        return self.query.exact(sums)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """That of the question, of rows of weight one: whether one is active follows from the row
        and from released values."""
        if facts.units.grouped:
            raise TypeError("a row must be all of its unit here.")
        return self.query.claims(facts._replace(units=UnitFacts(unit=facts.units.unit)))
