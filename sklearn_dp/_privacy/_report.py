"""What a fit released and what it cost, as a table for people.

A report holds nothing but what is public or released: names and mechanisms of the plan, scales of
the noise (which follow from shares and released values), costs. Before a fit it shows the plan, and
after it one line for each release.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from ._html import cell, columns_of, report_page
from ._neighbours import in_words
from ._optional import extra
from ._parts import maximum_cost
from ._words import best_guess, secret_in_words, what_can_be_told

__all__ = ["PrivacyReport"]

_EXACT = "Gaussian DP (exact)"


@dataclass(frozen=True)
class PrivacyReport:
    """The privacy guarantee of one fit, and the releases behind it.

    Attributes
    ----------
    epsilon, delta : float
        The guarantee of the whole fit, as planned and charged.
    rho : float
        The zCDP cost of the plan, which is what was charged.
    spent_rho : float
        What the releases used of it. The rest is lost: a charge is never given back.
    accounting : str
        How rho became epsilon, in words.
    unit : str
        "row" or "group": what is added or removed between neighbouring data sets.
    noise : str
        "system" (operating-system entropy), "seeded" (reproducible: no guarantee against those
        who know the seed), or "planned" for a plan that has not run.
    releases : tuple of dict
        One for each release: mechanism, sensitivity, noise scale, cost.
    notes : tuple of str
        What the guarantee assumes.
    relation : str
        What neighbouring data sets do with a unit.
    ledger : tuple of (str, float, float)
        Of each cost that the ledger of the fit counts: its name, what was charged for the fit, and
        the total of the ledger. Empty without a ledger.
    """

    epsilon: float
    delta: float
    rho: float
    spent_rho: float
    accounting: str
    unit: str
    noise: str
    releases: tuple[dict[str, Any], ...]
    notes: tuple[str, ...] = ()
    relation: str = "add or remove"
    ledger: tuple[tuple[str, float, float], ...] = ()

    @classmethod
    def from_plan(cls, plan: Any, log: Sequence[dict[str, Any]], noise: str) -> Self:
        """Collect what a session noted; without a log, describe the plan.

        Parameters
        ----------
        plan : PrivacyPlan
        log : sequence of dict
            A line for each release; see `PrivacySession._note`.
        noise : {"system", "seeded"}

        Returns
        -------
        report : PrivacyReport
        """
        releases = tuple(dict(row) for row in log) or tuple(plan.rows())
        return cls(
            epsilon=plan.epsilon,
            delta=plan.target.delta,
            rho=plan.rho,
            spent_rho=float(
                # Disjoint parts of the units do not add up; without a part, a line is about all.
                maximum_cost(
                    (tuple(row["part"].split("/")) if "part" in row else (), row["rho"])
                    for row in log
                )
            ),
            accounting="one (epsilon, delta)-DP step"
            if plan.one_step
            else _EXACT
            if plan.gaussian
            else "zCDP (tight conversion)",
            unit=plan.unit,
            noise=noise if log else "planned",
            releases=releases,
            notes=tuple(plan.notes),
            relation=plan.relation,
        )

    @property
    def neighbours(self) -> str:
        """The neighbouring relation in words."""
        return in_words(self.relation, self.unit)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Limits of the guarantee in words; nobody has to look for them in the documentation."""
        if self.noise != "seeded":
            return self.notes
        return ("seeded noise: no guarantee against those who know random_state", *self.notes)

    def to_frame(self) -> Any:
        """The releases as a pandas DataFrame (extra ``pandas``).

        Returns
        -------
        frame : DataFrame
            A row for each release, or for each plan entry before a fit.
        """
        with extra("pandas"):
            import pandas as pd

        return pd.DataFrame(list(self.releases))

    @property
    def headline(self) -> str:
        """The guarantee in one line, with neighbours, accounting and the source of the noise."""
        return (
            f"({self.epsilon:.4g}, {self.delta:.3g})-DP for {self.neighbours}; "
            f"rho = {self.rho:.4g}, {self.accounting}, noise: {self.noise}"
        )

    def __repr__(self) -> str:
        names = columns_of(self.releases)
        table = [names] + [[cell(row.get(name, "all")) for name in names] for row in self.releases]
        widths = [max(len(line[i]) for line in table) for i in range(len(names))]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True))
            for line in table
        ]
        tail = [f"note: {text}" for text in self.warnings]
        return "\n".join([self.headline, *(line.rstrip() for line in lines), *tail])

    @property
    def told(self) -> str:
        """What can be told of a unit from all that the fit releases, for people.

        Returns
        -------
        sentence : str
            In right guesses of a hundred: by the law of what is released, and by epsilon and delta
            alone.
        """
        planned = self.noise == "planned"
        words = what_can_be_told(
            secret_in_words(self.relation, self.unit),
            best_guess(self.epsilon, self.delta, self.rho, self.accounting == _EXACT),
            best_guess(self.epsilon, self.delta),
            "could" if planned else "can",
        )
        if self.noise == "seeded":
            return (
                "The noise of this fit protects nobody from those who know its random_state. "
                f"For all others: from all that it releases, {words}"
            )
        return f"From all that {'a fit by this plan' if planned else 'this fit'} releases, {words}"

    @property
    def spent(self) -> str:
        """What was spent, and of how much, as a sentence."""
        costs = self.ledger or [("epsilon", self.epsilon, None), ("delta", self.delta, None)]
        words = ", ".join(
            f"{name} = {cell(cost)}" + ("" if total is None else f" of your {cell(total)}")
            for name, cost, total in costs
        )
        return f"It {'would spend' if self.noise == 'planned' else 'spent'} {words}."

    def _repr_html_(self) -> str:
        return report_page(self)
