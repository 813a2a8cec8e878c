"""
The mean of data far from the origin, at an unknown place
=========================================================

A private mean needs noise in proportion to how much one person can change it. The textbook approach
is to clip every row to a ball known to contain all the data, and to add noise in proportion to its
radius. For data far from the origin this ball is huge, and the answer is mostly noise. If the ball
is too small, the answer is wrong without any sign of it.

:class:`~sklearn_dp.mean.FriendlyMean` privately finds where the rows are concentrated, and clips
there. Its noise is in proportion to the spread of the data, wherever they are. It needs no bounds.

1. **Phones in a city.** Synthetic data: 5,000 positions in meters from the center of the Earth, all
   in one city a few kilometers wide. The only public bound on positions on Earth is its radius,
   6,371 km.
2. **Shifted digits.** Real images of handwritten digits, 1,797 rows in 64 dimensions, as if read
   from a device with an unknown offset: the same vector of length R is added to every row. The
   textbook mean is given R; `FriendlyMean` is not.

Errors are distances from the exact mean of the rows. The textbook mean here draws ordinary
floating-point noise, which is good enough for a picture but protects nobody.
"""

import numpy as np
from _common import ACCENT, INK, MUTED, OTHER, legend_above, parse_arguments, print_table, save
from sklearn.datasets import load_digits

from sklearn_dp import FriendlyMean, PrivacyBudget

EPSILON, DELTA = 1.0, 1e-6
EARTH = 6_371_000.0  # meters

# %%
# The textbook method: clip to a ball around the origin, then divide a noisy sum by a noisy count.
# One row moves the pair (sum / bound, count) by at most sqrt(2).


def clipped_mean(X, bound, rng):
    sigma = np.sqrt(2) / np.sqrt(2 * PrivacyBudget(epsilon=EPSILON, delta=DELTA).to_rho())
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    clipped = X * np.minimum(1.0, bound / lengths)
    total = clipped.sum(axis=0) + sigma * bound * rng.standard_normal(X.shape[1])
    return total / (len(X) + sigma * rng.standard_normal())


def friendly_mean(X):
    return FriendlyMean(epsilon=EPSILON, delta=DELTA).fit(X).mean_


def distance(mean, X):
    return np.linalg.norm(mean - X.mean(axis=0))


# %%
# Part 1. Positions are drawn in the plane of the city, east and north of its center, and converted
# to meters from the center of the Earth.


def plane_of(latitude, longitude):
    """Unit vectors up, east and north at a place on Earth (in radians)."""
    (s, c), (sl, cl) = ((np.sin(angle), np.cos(angle)) for angle in (latitude, longitude))
    return np.array([c * cl, c * sl, s]), np.array([[-sl, cl, 0], [-s * cl, -s * sl, c]])


def make_city(n_phones, rng):
    """Positions of shape (n_phones, 3), and the plane of the city for drawing."""
    districts = np.array([[0.0, 0.0], [3.5, 2.5], [-4.0, 1.0], [1.0, -4.0]]) * 1000
    home = rng.choice(4, n_phones, p=[0.45, 0.25, 0.2, 0.1])
    flat = districts[home] + rng.normal(scale=1400.0, size=(n_phones, 2))
    up, axes = plane_of(np.arcsin(rng.uniform(-1, 1)), rng.uniform(-np.pi, np.pi))
    return EARTH * up + flat @ axes, axes


def run_city(n_phones, n_runs, rng):
    X, axes = make_city(n_phones, rng)
    means = {
        "exact, no privacy": X.mean(axis=0)[None],
        "FriendlyMean": np.array([friendly_mean(X) for _ in range(n_runs)]),
        "clipped at the radius of the Earth": np.array(
            [clipped_mean(X, EARTH, rng) for _ in range(n_runs)]
        ),
        "clipped at 100 km": np.array([clipped_mean(X, 1e5, rng) for _ in range(n_runs)]),
    }
    print(f"{n_phones:,} phones in a city, 6,371 km from the origin; {n_runs} runs of each mean\n")
    rows = [
        [name, f"{np.median([distance(mean, X) for mean in found]):,.0f} m"]
        for name, found in means.items()
    ]
    print_table(["mean", "median error"], rows)
    return X, axes, means


def print_report(X):
    model = FriendlyMean(epsilon=EPSILON, delta=DELTA).fit(X)
    print(
        f"\nPrivacy report of FriendlyMean: '{model.status_}', clipped to a ball of "
        f"{model.radius_ / 1000:.1f} km about the location found\n\n{model.privacy_report_}"
    )


# %%
# Part 2: error against the distance R.


def run_digits(distances, n_runs, rng):
    """Errors of shape (n_distances, n_runs) of each mean."""
    X = load_digits().data / 16
    direction = rng.standard_normal(X.shape[1])
    direction /= np.linalg.norm(direction)
    spread = np.linalg.norm(X - X.mean(axis=0), axis=1).max()
    errors = {"clipped at R + spread": [], "FriendlyMean": []}
    for far in distances:
        moved = X + far * direction
        bound = far + np.linalg.norm(X.mean(axis=0)) + spread
        runs = {
            "clipped at R + spread": [clipped_mean(moved, bound, rng) for _ in range(n_runs)],
            "FriendlyMean": [friendly_mean(moved) for _ in range(n_runs)],
        }
        for name, means in runs.items():
            errors[name].append([distance(mean, moved) for mean in means])
    print(f"\n{len(X):,} images of digits, moved by R; median error of {n_runs} runs\n")
    names = list(errors)
    medians = [np.median(errors[name], axis=1) for name in names]
    rows = [[f"{far:,.0f}", *(f"{value:,.3g}" for value in values)]
            for far, *values in zip(distances, *medians, strict=True)]  # fmt: skip
    print_table(["R", *names], rows)
    return {name: np.array(found) for name, found in errors.items()}


# %%
# The picture.

LOOK = {
    "FriendlyMean": {"color": ACCENT, "marker": "o"},
    "clipped at the radius of the Earth": {"color": OTHER, "marker": "x"},
    "exact, no privacy": {"color": INK, "marker": "+"},
}


def draw_means(axes, to_km, means, size=38):
    for name, look in LOOK.items():
        area = 130 if name.startswith("exact") else size
        axes.scatter(*to_km(means[name]), s=area, linewidths=1.6, label=name, **look)


def draw_zoom(axes, to_km, means):
    """The means within 100 meters: runs of `FriendlyMean` around the exact mean."""
    zoom = axes.inset_axes([0.63, 0.035, 0.335, 0.335])
    draw_means(zoom, to_km, means, size=16)
    zoom.set(xlim=(-0.1, 0.1), ylim=(-0.1, 0.1), xticks=[], yticks=[])
    zoom.spines[:].set_visible(True)
    zoom.text(0, 1.04, "the middle, 200 m wide", transform=zoom.transAxes, fontsize=9, color=MUTED)


def draw_city(axes, X, plane, means):
    center = X.mean(axis=0)

    def to_km(points):
        return ((points - center) @ plane.T / 1000).T

    axes.scatter(*to_km(X), s=3, color="#9aa3b2", alpha=0.35, linewidths=0, label="phones")
    draw_means(axes, to_km, means)
    axes.set_aspect("equal")
    reach = 1.3 * max(12.0, np.abs(to_km(means["clipped at the radius of the Earth"])).max())
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="km to the east",
             ylabel="km to the north", title="A city somewhere on Earth")  # fmt: skip
    axes.grid()
    axes.set_axisbelow(True)
    legend_above(axes, 2, handletextpad=0.3)
    draw_zoom(axes, to_km, means)


def draw_errors(axes, distances, errors):
    looks = {"FriendlyMean": (ACCENT, "o"), "clipped at R + spread": (OTHER, "x")}
    for name, (color, marker) in looks.items():
        low, mid, high = np.quantile(errors[name], [0.1, 0.5, 0.9], axis=1)
        axes.fill_between(distances, low, high, color=color, alpha=0.13, linewidth=0)
        axes.plot(distances, mid, color=color, marker=marker, linewidth=2, markersize=6)
        axes.annotate(name, (distances[-2], mid[-2]), (-9, 5), textcoords="offset points",
                      ha="right", color=color)  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="distance R of the digits from the origin",
             title="Error of the mean of 1,797 digits")  # fmt: skip
    axes.grid()
    axes.set_axisbelow(True)


def draw(figure, city, distances, errors):
    left, right = (figure.add_axes([x, 0.09, 0.415, 0.7]) for x in (0.065, 0.57))
    draw_city(left, *city)
    draw_errors(right, distances, errors)
    figure.text(0.065, 0.945, "Private means of data that are far away", fontsize=14, weight="bold")
    figure.text(0.515, 0.947, f"ε = {EPSILON:g}, δ = 10$^{{-6}}$ for each run", color=MUTED)


def main(argv=None):
    arguments = parse_arguments(__doc__, "far_mean.png", argv)
    rng = np.random.default_rng(7)  # for the data and the textbook; FriendlyMean has its own noise
    n_runs = 2 if arguments.quick else 10
    distances = np.logspace(0, 6, 3 if arguments.quick else 7)
    city = run_city(3000 if arguments.quick else 5000, n_runs, rng)
    print_report(city[0])
    errors = run_digits(distances, n_runs, rng)
    save(lambda figure: draw(figure, city, distances, errors), arguments.output, (10, 5.7))


if __name__ == "__main__":
    main()
