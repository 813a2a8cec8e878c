"""The picture of a curve: what each epsilon is worth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from .._base import BaseDPEstimator
from ._curve import PrivacyUtilityCurve, utility_curve
from ._metrics import COST
from ._style import ACCENT, INK, OTHER, PALE, axes_for, legend_above, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PrivacyUtilityDisplay"]

_MOST_TICKS = 10  # more epsilons than these get the ticks of a plain logarithmic axis
_WIDE = 20.0  # largest over smallest value from which on a linear axis hides the small ones


class PrivacyUtilityDisplay:
    """Plot of how good a private fit is at each epsilon.

    Use :meth:`from_estimator` or :meth:`from_curve`; both draw, and return the display.

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
    >>> from sklearn_dp.inspection import PrivacyUtilityDisplay
    >>> display = PrivacyUtilityDisplay.from_estimator(
    ...     DPKMeans(n_clusters=3), n_units=100_000, n_features=2, epsilons=[0.1, 1], n_repeats=3
    ... )  # doctest: +SKIP
    """

    def __init__(self, curve: PrivacyUtilityCurve) -> None:
        self.curve = curve

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseDPEstimator,
        X_public: ArrayLike | None = None,
        *,
        n_units: int,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Compute a curve on public or synthetic rows, and draw it. Nothing is charged.

        Parameters
        ----------
        estimator : BaseDPEstimator
            Not fitted; see `utility_curve` for this and what follows.
        X_public : array-like of shape (n_samples, n_features), optional
            Public rows of the same kind; never private ones.
        n_units : int
            Approximate number of private rows.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options : dict
            Other parameters of `utility_curve`, such as `epsilons` and `n_features`.

        Returns
        -------
        display : PrivacyUtilityDisplay
            Drawn; its `curve` has the numbers.
        """
        return cls.from_curve(utility_curve(estimator, X_public, n_units=n_units, **options), ax=ax)

    @classmethod
    def from_curve(cls, curve: PrivacyUtilityCurve, *, ax: Axes | None = None) -> Self:
        """Draw an existing curve.

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
        if not isinstance(curve, PrivacyUtilityCurve):
            raise TypeError(f"curve must be a PrivacyUtilityCurve, got {type(curve).__name__}.")
        return cls(curve).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the medians, the band of the quartiles, the reference and the floor.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        self : PrivacyUtilityDisplay
            With the artists as attributes.
        """
        curve, ax = self.curve, axes_for(ax, (6.8, 4.2))
        low, median, high = curve.quartiles
        self.ax_, self.figure_ = ax, ax.figure
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
        return self

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
