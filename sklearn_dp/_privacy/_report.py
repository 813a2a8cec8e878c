"""What a fit released and what it cost, as a table for people.

A report holds nothing but what is public or released: names and mechanisms of the plan, scales of
the noise (which follow from shares and released values), costs. Before a fit it shows the plan, and
after it one line for each release.
"""

from dataclasses import dataclass
from html import escape

from ._neighbours import in_words
from ._parts import maximum_cost

__all__ = ["PrivacyReport"]

_COLUMNS = (
    "release", "mechanism", "sensitivity", "sigma", "noise / signal", "rho", "cap", "delta",
    "path", "part",
)  # fmt: skip


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
    """

    epsilon: float
    delta: float
    rho: float
    spent_rho: float
    accounting: str
    unit: str
    noise: str
    releases: tuple
    notes: tuple = ()
    relation: str = "add or remove"

    @classmethod
    def from_plan(cls, plan, log, noise):
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
            else "Gaussian DP (exact)"
            if plan.gaussian
            else "zCDP (tight conversion)",
            unit=plan.unit,
            noise=noise if log else "planned",
            releases=releases,
            notes=tuple(plan.notes),
            relation=plan.relation,
        )

    @property
    def neighbours(self):
        """The neighbouring relation in words."""
        return in_words(self.relation, self.unit)

    @property
    def warnings(self):
        """Limits of the guarantee in words; nobody has to look for them in the documentation."""
        if self.noise != "seeded":
            return self.notes
        return ("seeded noise: no guarantee against those who know random_state", *self.notes)

    def to_frame(self):
        """The releases as a pandas DataFrame (needs pandas).

        Returns
        -------
        frame : DataFrame
            A row for each release, or for each plan entry before a fit.
        """
        import pandas as pd

        return pd.DataFrame(list(self.releases))

    def _headline(self):
        """The guarantee in one line, with neighbours, accounting and the source of the noise."""
        return (
            f"({self.epsilon:.4g}, {self.delta:.3g})-DP for {self.neighbours}; "
            f"rho = {self.rho:.4g}, {self.accounting}, noise: {self.noise}"
        )

    def _columns(self):
        """The columns that say something: a path that is "all" everywhere does not."""
        told = {name for row in self.releases for name in row}
        if all(row.get("path", "all") == "all" for row in self.releases):
            told.discard("path")
        return [name for name in _COLUMNS if name in told]

    def __repr__(self):
        names = self._columns()
        table = [names] + [[_cell(row.get(name, "all")) for name in names] for row in self.releases]
        widths = [max(len(line[i]) for line in table) for i in range(len(names))]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True))
            for line in table
        ]
        tail = [f"note: {text}" for text in self.warnings]
        return "\n".join([self._headline(), *(line.rstrip() for line in lines), *tail])

    def _repr_html_(self):
        names = self._columns()
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>"
            + "".join(f"<td>{escape(_cell(row.get(name, 'all')))}</td>" for name in names)
            + "</tr>"
            for row in self.releases
        )
        notes = "".join(f"<p>{escape(text)}</p>" for text in self.warnings)
        return (
            f"<p><b>{escape(self._headline())}</b></p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"
        )


def _cell(value):
    """A value with four digits, which is enough to read; the frame holds all of them.

    Examples
    --------
    >>> _cell(0.123456), _cell("sum")
    ('0.1235', 'sum')
    """
    return f"{value:.4g}" if isinstance(value, float) else str(value)
