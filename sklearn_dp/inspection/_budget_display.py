"""Where a budget goes: the shares of a plan, of a report or of a ledger as bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from .._costs.pages import cost_of, in_plain_words, per_cent
from .._costs.plan import PrivacyPlan
from .._costs.report import PrivacyReport
from .._privacy._ledger import PrivacyLedger
from ._curve import (
    ACCENT,
    COST,
    INK,
    OTHER,
    PALE,
    Display,
    PrivacyUtilityCurve,
    legend_above,
    title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_BARS = 14  # what is beyond the largest of them is one bar together


@dataclass(eq=False, repr=False)
class BudgetDisplay(Display):
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

    labels: Sequence[str]
    shares: Sequence[float]
    heading: str
    left: float | None = None

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
        rest = None if report.noise == "planned" else max(0.0, 1 - report.spent_rho / whole)
        return cls(labels, shares, heading, rest).plot(ax=ax)

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

    def _bars(self) -> tuple[list[str], list[float]]:
        """The largest bars in their own order, one for the others together, and what is left."""
        labels, shares = list(self.labels), list(self.shares)
        if len(shares) > _MOST_BARS:
            order = sorted(range(len(shares)), key=lambda i: -shares[i])
            kept, rest = sorted(order[: _MOST_BARS - 1]), order[_MOST_BARS - 1 :]
            labels = [*(labels[i] for i in kept), f"{len(rest)} others"]
            shares = [*(shares[i] for i in kept), sum(shares[i] for i in rest)]
        if self.left is None:
            return labels, shares
        return [*labels, "not spent"], [*shares, self.left]

    def _size(self) -> tuple[float, float]:
        return 7.0, 1.3 + 0.3 * len(self._bars()[0])  # a bar each, and as much again around them

    def _draw(self, ax: Axes) -> None:
        labels, shares = self._bars()
        last = ACCENT if self.left is None else PALE
        colors = [*[ACCENT] * (len(labels) - 1), last]
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


def _check(name: str, value: object, kind: type) -> None:
    """Refuse what is of another kind, by the name of the parameter."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, got {type(value).__name__}.")


def _times(count: int, what: str = "times") -> str:
    """How often, where it is more than once."""
    return f" ({count} {what})" if count > 1 else ""


# -- utility display -------------------------------------------------------------------------------


_MOST_TICKS = 10  # more epsilons than these get the ticks of a plain logarithmic axis
_WIDE = 20.0  # largest over smallest value from which on a linear axis hides the small ones


@dataclass(eq=False, repr=False)
class PrivacyUtilityDisplay(Display):
    """Plot of how good a private fit is at each epsilon.

    Use :meth:`from_curve`, which draws, and returns the display.

    Parameters
    ----------
    curve : PrivacyUtilityCurve
        From `utility_curve`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the curve was drawn.
    figure_ : matplotlib Figure
        Of these axes.
    line_ : matplotlib Line2D
        The medians.
    band_ : matplotlib PolyCollection
        From the lower to the upper quartile.
    reference_ : matplotlib Line2D or None
        The fit without privacy.
    floor_ : matplotlib Line2D or None
        The lower bound of the cost, a dotted line, if it is known.

    See Also
    --------
    utility_curve : The numbers.
    BudgetDisplay : Where a budget goes.

    Examples
    --------
    >>> from sklearn_dp import DPKMeans
    >>> from sklearn_dp.inspection import PrivacyUtilityDisplay, utility_curve
    >>> curve = utility_curve(
    ...     DPKMeans(n_clusters=3), n_units=100_000, n_features=2, epsilons=[0.1, 1], n_repeats=3
    ... )
    >>> display = PrivacyUtilityDisplay.from_curve(curve)  # doctest: +SKIP
    """

    curve: PrivacyUtilityCurve

    @classmethod
    def from_curve(cls, curve: PrivacyUtilityCurve, *, ax: Axes | None = None) -> Self:
        """Draw a curve.

        Parameters
        ----------
        curve : PrivacyUtilityCurve
            From `utility_curve`.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        display : PrivacyUtilityDisplay
            Drawn.
        """
        _check("curve", curve, PrivacyUtilityCurve)
        return cls(curve).plot(ax=ax)

    def _size(self) -> tuple[float, float]:
        return 6.8, 4.2

    def _draw(self, ax: Axes) -> None:
        curve = self.curve
        low, median, high = curve.quartiles
        self.reference_ = self.floor_ = None
        if math.isfinite(curve.reference):
            self.reference_ = ax.axhline(
                curve.reference, color=INK, lw=1.2, ls=(0, (5, 3)), label="without privacy"
            )
        if curve.floor is not None:
            (self.floor_,) = ax.plot(
                curve.epsilons, curve.floor, ":", color=OTHER, lw=1.8, label="noise alone: at least"
            )
        self.band_ = ax.fill_between(
            curve.epsilons, low, high, color=ACCENT, alpha=0.18, lw=0, label="half of the fits"
        )
        (self.line_,) = ax.plot(
            curve.epsilons, median, "o-", color=ACCENT, lw=2, ms=5, label="median fit"
        )
        self._dress(ax)

    def _dress(self, ax: Axes) -> None:
        """Scales, ticks, words."""
        curve = self.curve
        # A logarithmic axis has the ticks of the curve itself: people ask about these epsilons.
        ax.set_xscale("log")
        if len(curve.epsilons) <= _MOST_TICKS:
            ax.set_xticks(curve.epsilons, [f"{epsilon:g}" for epsilon in curve.epsilons])
            ax.set_xticks([], minor=True)
        values = curve.values
        if values.min() > 0 and values.max() > _WIDE * values.min():
            ax.set_yscale("log")
        ax.grid(axis="y", color=PALE, lw=0.6)
        ax.set_xlabel("ε of the fit")
        ax.set_ylabel(curve.metric)
        if curve.metric == COST:  # "+0.5%" says more than 1.005
            ax.set_ylabel("cost relative to no privacy")
            ax.yaxis.set_major_formatter(lambda ratio, _: _per_cent(ratio))
        rows = f"{curve.n_units:,} rows" + (", synthetic" if curve.synthetic else "")
        title(ax, f"{curve.estimator}: what ε costs ({rows})", lines_below=1)
        legend_above(ax, columns=4)


def _per_cent(ratio: float) -> str:
    """How much a ratio is above one, without the digits that rounding adds.

    >>> _per_cent(1.005), _per_cent(1.0), _per_cent(0.9)
    ('+0.5%', '0%', '-10%')
    """
    more = round(100 * (ratio - 1), 9)
    return f"{more:+g}%" if more else "0%"
