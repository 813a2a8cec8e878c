"""Options that few fits need, and public facts as they are told by a caller."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base import check_real, read_table
from .._by_name import by_name
from .._privacy._checks import check_choice

METHODS = ("default", "paper", "lloyd", "kmeans++", "sphere_packing")
"""What a fit may do: all the rounds, ours or the paper's; or Lloyd rounds from a public start."""

_LEAST_BOUND = 1e-6  # of a client's vector: more than a step of the longest one
_FARTHEST = 1e100  # of the server's numbers: no square of a distance overflows


@dataclass(frozen=True)
class FederatedOptions:
    """Rarely needed options of :class:`~sklearn_dp.FederatedDPKMeans`.

    Parameters
    ----------
    count_noise : {"gaussian", "laplace"}, default="gaussian"
        "laplace" as in the paper; the plan is then accounted as zCDP, so the same budget buys less
        accuracy.
    client_bounds : dict of str to float, optional
        For clients as the unit: the norm that a vector is clipped to, over the largest norm that a
        client may have, between 1e-6 and 1. By name of the release, such as ``{"second moment":
        0.2}``. Releases that are not named are bounded by what simulated clients send.
    """

    count_noise: str = "gaussian"
    client_bounds: Mapping[str, float] | None = None


def check_options(options: FederatedOptions | None) -> FederatedOptions:
    """Refuse what is no :class:`FederatedOptions`, and bad values of its fields."""
    options = FederatedOptions() if options is None else options
    if not isinstance(options, FederatedOptions):
        raise TypeError("options must be a FederatedOptions.")
    check_choice("options.count_noise", options.count_noise, ("gaussian", "laplace"))
    if options.client_bounds is not None:
        if not isinstance(options.client_bounds, Mapping):
            raise TypeError("options.client_bounds must be a dict of numbers.")
        for name, value in options.client_bounds.items():
            name = f"options.client_bounds[{name!r}]"
            # A client's vector is multiplied by the share and divided by it: of a subnormal one it
            # was a third longer than the noise covers.
            check_real(value, name, low=_LEAST_BOUND, high=1 + 1e-12)
    return options


def public_points(X_server: Any, names: Any = None) -> np.ndarray | None:
    """The server's points as an array of their own, or None; columns in the order of `names`."""
    if X_server is None:
        return None
    return read_table(by_name(X_server, names, "X_server"), "X_server").copy()


def check_server(server: np.ndarray, n_clusters: int, n_features: int) -> None:
    """Refuse public points of another width, too far away, or too few distinct ones."""
    if server.shape[1] != n_features:
        raise ValueError("X_server must have as many columns as X.")
    if np.abs(server).max() > _FARTHEST:
        raise ValueError(f"X_server: numbers must not exceed {_FARTHEST:g}.")
    if len(np.unique(server, axis=0)) < n_clusters:
        raise ValueError("X_server must contain at least n_clusters distinct points.")
