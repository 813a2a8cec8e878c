"""Options of the aggregators of k-tuples: what only one kind of them reads."""

from dataclasses import asdict, dataclass
from typing import Any

from .._base import check_real
from .._queries.separated_balls import LEAST_SEPARATION
from .._queries.tuples import MATCH_LIMIT

__all__ = ["FarBallsOptions", "FriendlyCoreOptions", "aggregator_settings"]


@dataclass(frozen=True)
class FriendlyCoreOptions:
    """Options of ``aggregator="friendly_core"``.

    Parameters
    ----------
    gamma : float, default=0.2
        Two tuples match if every point is nearer to its partner than gamma times its distance to
        any other point. In (0, 1/5]: above 1/5 matches no longer compose, and the guarantee would
        not hold. Smaller values require clusters that are farther apart.

    Examples
    --------
    >>> from sklearn_dp.cluster import DPKTupleKMeans, FriendlyCoreOptions
    >>> options = FriendlyCoreOptions(gamma=1 / 7)
    >>> DPKTupleKMeans(3, aggregator="friendly_core", options=options).options.gamma < 0.2
    True
    """

    gamma: float = MATCH_LIMIT

    def check(self) -> None:
        """Refuse bad values by name."""
        if check_real(self.gamma, "gamma") > MATCH_LIMIT:
            raise ValueError("gamma must be positive and at most 1/5.")


@dataclass(frozen=True)
class FarBallsOptions:
    """Options of ``aggregator="k_averages"`` and ``aggregator="noisy_centers"``.

    Parameters
    ----------
    separation : float, optional
        Distance, in radii, between the centers of the balls that must partition nearly all tuples;
        more than 6. The default for "k_averages" is 7. For "noisy_centers" the default makes the
        noise of a center about one seventh of its distance to the next one: a larger separation
        means smaller balls and less noise, but the tuples must agree more closely.

    Examples
    --------
    >>> from sklearn_dp.cluster import DPKTupleKMeans, FarBallsOptions
    >>> options = FarBallsOptions(separation=50.0)
    >>> DPKTupleKMeans(3, aggregator="noisy_centers", options=options).options.separation
    50.0
    """

    separation: float | None = None

    def check(self) -> None:
        """Refuse bad values by name."""
        if self.separation is not None:
            check_real(self.separation, "separation", low=LEAST_SEPARATION, high=1e6)


_KINDS: dict[str, type[FriendlyCoreOptions] | type[FarBallsOptions]] = {
    "friendly_core": FriendlyCoreOptions,
    "k_averages": FarBallsOptions,
    "noisy_centers": FarBallsOptions,
}


def aggregator_settings(aggregator: str, options: object) -> dict[str, Any]:
    """The fields of the options of an aggregator; options of another one are refused.

    "auto" takes no options: what it stands for depends on the budget. Of None, nothing: the
    defaults of the tuple stage, whose arguments these are, are those of the options.
    """
    if options is None:
        return {}
    kind = _KINDS.get(aggregator)
    if kind is None:
        raise ValueError(
            f"options must be None for aggregator={aggregator!r}; only these have options: "
            f"{', '.join(_KINDS)}."
        )
    if not isinstance(options, kind):
        raise TypeError(f"options must be a {kind.__name__} for aggregator={aggregator!r}.")
    options.check()
    return asdict(options)
