"""
New rows every day: ninety days of positions that drift
=======================================================

Each day brings 300 new positions of scooters, and the places where they gather move in spring. The
positions are deleted every evening. Only the released centers are kept, and
:meth:`~sklearn_dp.cluster.DPKMeans.partial_fit` improves them with the rows of each day.

A scooter is used on one day only, so each day may spend the whole budget on its rows: all ninety
days together are as private as one fit, and a ledger is charged once. With a half-life of ten
days, older days have less weight.

The picture has the published centers of three days, in front of the positions that nobody keeps.
It also compares, for each day, the distance of the centers from the true places with the released
standard error.
"""

import warnings

import numpy as np
from _common import ACCENT, INK, MUTED, OTHER, legend_above, parse_arguments, print_table, save

from sklearn_dp import DPKMeans, PrivacyBudget, PrivacyLedger
from sklearn_dp.exceptions import UtilityWarning

EPSILON, DELTA = 1.0, 1e-6
PLACES = np.array([[-3.0, 2.0], [0.0, 0.5], [2.5, 3.0], [3.0, -2.0], [-1.5, -3.0]])  # km
DRIFT = np.array([[0.03, 0.0], [0.0, 0.0], [-0.02, 0.02], [0.0, 0.03], [-0.02, -0.02]])  # a day
WIDTH, ROWS = 0.5, 300


def places_on(day):
    """Where scooters are: the summer term begins elsewhere."""
    return PLACES + day * DRIFT


def positions_on(day, rng):
    """The rows of one day."""
    return places_on(day)[rng.integers(5, size=ROWS)] + WIDTH * rng.normal(size=(ROWS, 2))


# %%
# One day after the other. The results of early days may be mostly noise. Each then gives a warning,
# which is a column of the table here.


def follow(n_days, rng):
    """What is published each day: centers, stated errors, status."""
    ledger = PrivacyLedger(PrivacyBudget(EPSILON, DELTA))
    model = DPKMeans(5, epsilon=EPSILON, delta=DELTA, bounds=8.0, ledger=ledger)
    published = []
    for day in range(n_days):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UtilityWarning)
            model.partial_fit(positions_on(day, rng), day=day, half_life=10)
        error = np.sqrt(np.mean(np.square(model.cluster_centers_std_error_)))
        published.append((model.cluster_centers_, error, model.status_))
    print(f"{n_days} days of {ROWS} positions; charges in the ledger: {len(ledger.entries)}")
    print(f"\nPrivacy report of the last day: '{model.status_}'\n\n{model.privacy_report_}\n")
    return published


def distance(centers, day):
    """Root mean squared error of a coordinate of the nearest centers."""
    apart = np.linalg.norm(places_on(day)[:, None] - centers, axis=2).min(axis=1)
    return float(np.sqrt(np.mean(apart**2) / 2))


def print_days(published):
    days = sorted({0, 1, 2, 6, len(published) // 2, len(published) - 1})
    rows = [
        [str(day + 1), f"{distance(centers, day):.3f}", f"{error:.3f}", status[:40]]
        for day in days
        for centers, error, status in (published[day],)
    ]
    print_table(["day", "error, km", "as stated", "status"], rows)


# %%
# The picture.


def draw_map(axes, published, rng):
    days = [4, len(published) // 2, len(published) - 1]
    for day, shade in zip(days, ("#c3c9d4", OTHER, ACCENT), strict=True):
        rows, centers = positions_on(day, rng), published[day][0]
        axes.scatter(*rows.T, s=3, color=shade, alpha=0.25, linewidths=0)
        axes.scatter(
            *centers.T, s=70, color=shade, edgecolors=INK, label=f"day {day + 1}", zorder=3
        )
    axes.set(xlabel="km to the east", ylabel="km to the north", title="Published centers")
    axes.set_aspect("equal", adjustable="datalim")
    legend_above(axes, 3, handletextpad=0.3)


def draw_errors(axes, published):
    days = np.arange(1, len(published) + 1)
    errors = [distance(centers, day) for day, (centers, _, _) in enumerate(published)]
    axes.plot(days, errors, color=ACCENT, linewidth=2, label="error of a coordinate")
    axes.plot(days, [error for _, error, _ in published], color=INK, linestyle=":", label="stated")
    axes.set(yscale="log", xlabel="day", ylabel="km", title="Distance from the true places")
    axes.grid()
    legend_above(axes, 2, handletextpad=0.3)


def draw(figure, published, rng):
    left, right = (figure.add_axes([x, 0.11, 0.4, 0.66]) for x in (0.07, 0.57))
    draw_map(left, published, rng)
    draw_errors(right, published)
    figure.text(
        0.07, 0.945, "Positions of each day, used once and deleted", fontsize=14, weight="bold"
    )
    figure.text(0.07, 0.9, f"ε = {EPSILON:g}, δ = 10$^{{-6}}$ for all days together", color=MUTED)


def main(argv=None):
    arguments = parse_arguments(__doc__, "days.png", argv)
    rng = np.random.default_rng(3)  # for the positions; the noise is that of the system
    published = follow(30 if arguments.quick else 90, rng)
    print_days(published)
    save(lambda figure: draw(figure, published, rng), arguments.output, (10, 5.7))


if __name__ == "__main__":
    main()
