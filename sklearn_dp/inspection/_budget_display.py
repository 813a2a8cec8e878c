"""Where a budget goes: the shares of a plan, of a report or of a ledger as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from .._privacy._guarantee_text import in_plain_words
from .._privacy._html import cost_of, per_cent
from .._privacy._ledger import PrivacyLedger
from .._privacy._plan import PrivacyPlan
from .._privacy._report import PrivacyReport
from ._style import ACCENT, INK, PALE, axes_for, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BudgetDisplay"]

_MOST_BARS = 14  # what is beyond the largest of them is one bar together


class BudgetDisplay:
    """Bar plot of where a privacy budget goes.

    Use :meth:`from_plan`, :meth:`from_report` or :meth:`from_ledger`; they draw, and return the
    display.

    Parameters
    ----------
    labels : sequence of str
        Labels of the bars, from top to bottom.
    shares : sequence of float
        Shares of the whole budget; 1 is all of it.
    heading : str
        Title of the plot.
    left : float, optional
        Unspent share, a pale bar at the bottom. None: no such bar.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the bars were drawn.
    figure_ : matplotlib Figure
        Of these axes.
    bars_ : matplotlib BarContainer
        One bar for each label, and one for the unspent share.

    See Also
    --------
    PrivacyUtilityDisplay : What a budget buys.

    Notes
    -----
    For a fit, shares are of rho, because the costs of releases add up in rho but not in epsilon.
    For a ledger, they are of the cost that it counts. All of this is public or released, so plots
    are free.

    Examples
    --------
    >>> from sklearn_dp import DPKMeans
    >>> from sklearn_dp.inspection import BudgetDisplay
    >>> display = BudgetDisplay.from_plan(DPKMeans().privacy_plan(2))  # doctest: +SKIP
    """

    def __init__(
        self,
        labels: Sequence[str],
        shares: Sequence[float],
        heading: str,
        left: float | None = None,
    ) -> None:
        self.labels = labels
        self.shares = shares
        self.heading = heading
        self.left = left

    @classmethod
    def from_plan(cls, plan: PrivacyPlan, *, ax: Axes | None = None) -> Self:
        """Draw what a fit will spend on each release.

        Parameters
        ----------
        plan : PrivacyPlan
            From `privacy_plan` of an estimator.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        display : BudgetDisplay
            If a fit takes one of several branches, the bars of all branches add up to more than the
            whole; their labels name the branch.
        """
        _check("plan", plan, PrivacyPlan)
        whole = plan.rho or 1.0  # of a plan that spends nothing, no share is anything
        labels = [
            in_plain_words(entry.name) + (f" ({' or '.join(entry.paths)})" if entry.paths else "")
            for entry in plan.entries
        ]
        heading = f"Plan: ε = {plan.epsilon:.3g}, δ = {plan.target.delta:.2g}"
        return cls(labels, [entry.rho / whole for entry in plan.entries], heading).plot(ax=ax)

    @classmethod
    def from_report(cls, report: PrivacyReport, *, ax: Axes | None = None) -> Self:
        """Draw what a fit has spent on each release, and what it was charged but did not use.

        Parameters
        ----------
        report : PrivacyReport
            `privacy_report_` of a fitted estimator.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        display : BudgetDisplay
            Releases with the same name are one bar. If they are about disjoint parts of the rows,
            the bar is the cost of the most expensive chain.
        """
        _check("report", report, PrivacyReport)
        whole = (report.spent_rho if report.problems else report.rho) or 1.0
        groups: dict[str, list[Any]] = {}
        for row in report.releases:
            groups.setdefault(row["release"], []).append(row)
        labels = [in_plain_words(name) + _times(len(rows)) for name, rows in groups.items()]
        shares = [cost_of(rows) / whole for rows in groups.values()]
        numbers = f"ε = {report.epsilon:.3g}, δ = {report.delta:.2g}"
        heading = f"Fit: {'no guarantee' if report.problems else numbers}"
        # A report of a plan has spent nothing yet.
        left = None if report.noise == "planned" else max(0.0, 1 - report.spent_rho / whole)
        return cls(labels, shares, heading, left).plot(ax=ax)

    @classmethod
    def from_ledger(cls, ledger: PrivacyLedger, *, ax: Axes | None = None) -> Self:
        """Draw what the fits of a study were charged, and the remaining budget.

        Parameters
        ----------
        ledger : PrivacyLedger
            Opened by its path, or in memory; it is read once.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        display : BudgetDisplay
            Charges with the same label are one bar, in order of the first charge. Of the two costs
            that a ledger counts, the one with the larger spent share is shown. Of charges to the
            values of a key, a bar is what the units pay that pay most for this label.
        """
        _check("ledger", ledger, PrivacyLedger)
        state = ledger.state()
        which, used = state.used()
        groups = state.by_label()
        labels = [name + _times(len(each), "fits") for name, (each, _) in groups.items()]
        shares = [share for _, share in groups.values()]
        spent, cap = list(state.spent.values())[which], state.terms.caps[which]
        name = state.terms.columns[which].replace("_", " ")
        heading = f"Ledger: {name}, {spent:.3g} of {cap:.3g} spent"
        return cls(labels, shares, heading, max(0.0, 1 - used)).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the bars, the first at the top, with their shares in percent.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        self : BudgetDisplay
            With the artists as attributes.
        """
        labels, shares = _largest(self.labels, self.shares)
        colors = [ACCENT] * len(labels)
        if self.left is not None:
            labels, shares, colors = [*labels, "not spent"], [*shares, self.left], [*colors, PALE]
        # A bar each, and as much again for title and axis.
        ax = axes_for(ax, (7.0, 1.3 + 0.3 * len(labels)))
        self.ax_, self.figure_ = ax, ax.figure
        self.bars_: Any = ax.barh(range(len(labels)), shares, color=colors, height=0.66)
        ax.bar_label(self.bars_, [per_cent(s) for s in shares], padding=4, fontsize=9, color=INK)
        ax.set_yticks(range(len(labels)), labels)
        ax.tick_params(axis="y", length=0)
        # Room for the number beside the longest bar.
        ax.set_xlim(0, 1.14 * max([*shares, 1e-9]))
        # From top to bottom; two bars alone would be blocks.
        ax.set_ylim(max(len(labels), 5) - 0.5, -0.5)
        ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
        ax.grid(axis="x", color=PALE, lw=0.6)
        ax.set_xlabel("share of the budget")
        title(ax, self.heading)
        return self


def _check(name: str, value: object, kind: type) -> None:
    """Refuse what is of another kind, by the name of the parameter."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, got {type(value).__name__}.")


def _times(count: int, what: str = "times") -> str:
    """How often, where it is more than once."""
    return f" ({count} {what})" if count > 1 else ""


def _largest(labels: Sequence[str], shares: Sequence[float]) -> tuple[list[str], list[float]]:
    """The largest bars in their own order, and one for the others together."""
    if len(shares) <= _MOST_BARS:
        return list(labels), list(shares)
    order = sorted(range(len(shares)), key=lambda i: -shares[i])
    kept = sorted(order[: _MOST_BARS - 1])
    rest = order[_MOST_BARS - 1 :]
    return (
        [*(labels[i] for i in kept), f"{len(rest)} others"],
        [*(shares[i] for i in kept), sum(shares[i] for i in rest)],
    )
