"""
Find the densest place in a city, privately
===========================================

This example searches taxi positions for a small ball that holds two in ten of them. The result is a
place and a radius that may be published: no single position determines it. For comparison, the
script also finds the best of many balls centered at the positions themselves, without privacy.

If the folder `shared/data` exists next to the checkout, the positions are GPS fixes of taxis in San
Francisco (cabs_sf.npz: cabspotting, 2008); otherwise they are generated. The output says which.

In a terminal::

    python examples/plot_densest_place.py [--quick] [--output FILE.png]
"""

import warnings

import numpy as np
from _common import (
    ACCENT,
    HERE,
    MUTED,
    OTHER,
    legend_above,
    parse_arguments,
    print_table,
    save,
    timed,
)
from scipy.spatial import cKDTree

from sklearn_dp import DPOneCluster

REAL = HERE.parents[1] / "shared" / "data" / "cabs_sf.npz"
BOX = np.array([[37.0, -123.0], [38.5, -121.5]])  # degrees: the public bounds
SHARE = 0.2
KM = np.array([111.2, 88.0])  # a degree of latitude, of longitude


def generated(rng, size):
    """A crowded center, an airport, and roads between them."""
    kinds = rng.random(size)
    center = [37.79, -122.41] + rng.normal(size=(size, 2)) * [0.008, 0.01]
    airport = [37.616, -122.386] + rng.normal(size=(size, 2)) * 0.004
    road = [37.79, -122.41] + rng.random((size, 1)) * [[-0.17, 0.02]]
    road = road + rng.normal(size=(size, 2)) * 0.01
    return np.where(kinds[:, None] < 0.55, center, np.where(kinds[:, None] < 0.7, airport, road))


def positions(size):
    """Rows of latitude and longitude, and their source."""
    rng = np.random.default_rng(0)
    if REAL.exists():
        with np.load(REAL, allow_pickle=False) as archive:
            X = archive["X"].astype(float)
        return X[rng.permutation(len(X))[:size]], "GPS fixes of taxis in San Francisco"
    return generated(rng, size), "generated positions (no real data at hand)"


def without_privacy(X, t):
    """The smallest ball around one of 2,000 positions that holds t of them."""
    centers = X[np.random.default_rng(1).permutation(len(X))[:2000]]
    radii = np.array([np.partition(np.sum((X - c) ** 2, axis=1), t - 1)[t - 1] for c in centers])
    return centers[radii.argmin()], float(np.sqrt(radii.min()))


def draw(figure, X, answers):
    """Both balls on the positions."""
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    axes.scatter(X[:, 1], X[:, 0], s=2, color=MUTED, alpha=0.15, linewidths=0)
    angle = np.linspace(0, 2 * np.pi, 200)
    for name, center, radius, color in answers:
        axes.plot(
            center[1] + radius * np.cos(angle),
            center[0] + radius * np.sin(angle),
            color=color,
            lw=2,
            label=name,
        )
    middle, reach = answers[0][1], 0.12
    axes.set(
        xlim=(middle[1] - reach, middle[1] + reach),
        ylim=(middle[0] - reach, middle[0] + reach),
        xlabel="longitude",
        ylabel="latitude",
        title="Where two in ten positions are",
    )
    legend_above(axes, 2)


def main(argv=None):
    options = parse_arguments(__doc__, "densest_place.png", argv)
    X, origin = positions(5_000 if options.quick else 50_000)
    print(f"Data: {origin}, {len(X)} rows; budget epsilon = 1\n")
    model = DPOneCluster(n_points=SHARE, epsilon=1.0, bounds=tuple(BOX))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, ours = timed(model.fit, X)
    (center, radius), plain = timed(without_privacy, X, int(SHARE * len(X)))
    inside = len(cKDTree(X).query_ball_point(model.center_, model.radius_))
    rows = [
        [
            "DPOneCluster",
            f"{model.center_[0]:.4f}, {model.center_[1]:.4f}",
            f"{model.radius_ * KM[0]:.2f}",
            f"{inside / len(X):.3f}",
            f"{ours.wall:.1f}",
        ],
        [
            "without privacy",
            f"{center[0]:.4f}, {center[1]:.4f}",
            f"{radius * KM[0]:.2f}",
            f"{SHARE:.3f}",
            f"{plain.wall:.1f}",
        ],
    ]
    print_table(["", "place", "radius, km", "share of rows", "wall s"], rows)
    apart = np.linalg.norm((center - model.center_) * KM)
    print(f"\nThe places are {apart:.2f} km apart.\n")
    print(model.privacy_report_)
    answers = [
        ("DPOneCluster, epsilon = 1", model.center_, model.radius_, ACCENT),
        ("without privacy", center, radius, OTHER),
    ]
    save(lambda figure: draw(figure, X, answers), options.output, (7, 7))


if __name__ == "__main__":
    main()
