"""
Cluster rows that stay with their clients
=========================================

Forty clients hold points from six groups, unevenly: no client sees all groups. The server has a few
public points, some of them in places where no client has any. Using nothing but noisy sums over the
clients, :class:`~sklearn_dp.FederatedDPKMeans` learns the weights of the server's points (middle)
and then the centers (right).
"""

import numpy as np
from _common import ACCENT, MUTED, OTHER, legend_above, parse_arguments, print_table, save

from sklearn_dp import DPKMeans, FederatedDPKMeans

K, CLIENTS = 6, 40

# %%
# Each client draws most of its rows from two of the groups.


def clients_and_server(rows, rng):
    """The groups' centers, the rows with their clients, and the server's points."""
    angles = 2 * np.pi * np.arange(K) / K
    means = np.column_stack([np.cos(angles), np.sin(angles)])
    means *= np.linspace(0.6, 1.0, K)[:, None]
    labels = np.concatenate(
        [rng.choice(rng.choice(K, 2, replace=False), rows) for _ in range(CLIENTS)]
    )
    X = means[labels] + 0.08 * rng.normal(size=(len(labels), 2))
    server = np.vstack(
        [
            np.repeat(means, 4, axis=0) + 0.08 * rng.normal(size=(4 * K, 2)),
            rng.uniform(-1.3, 1.3, size=(30, 2)),
        ]
    )
    return means, X, np.repeat(np.arange(CLIENTS), rows), server


def far(means, model):
    """Largest distance from a group to its nearest center."""
    return np.linalg.norm(means[:, None] - model.cluster_centers_, axis=2).min(axis=1).max()


# %%


def draw(figure, X, clients, server, by_row, by_client):
    figure.set_layout_engine("constrained")
    left, middle, right = figure.subplots(1, 3, sharex=True, sharey=True)
    for client, color in ((0, ACCENT), (1, OTHER), (2, "#009e73")):
        left.scatter(
            *X[clients == client].T, s=4, alpha=0.4, color=color, label=f"client {client + 1}"
        )
    left.set_title("What three clients hold")
    legend_above(left, 3, markerscale=2)
    weights = np.maximum(by_row.server_weights_, 0)
    middle.scatter(*server.T, s=9, color=MUTED, marker="x")
    middle.scatter(
        *by_row.server_points_.T, s=400 * weights / weights.max(), color=ACCENT, alpha=0.35
    )
    middle.set_title("Public points, noisy weights", pad=26)
    right.scatter(*X[::7].T, s=2, alpha=0.15, color=MUTED)
    right.scatter(
        *by_row.cluster_centers_.T,
        s=70,
        color=ACCENT,
        marker="o",
        label="for each row, epsilon = 1",
    )
    right.scatter(
        *by_client.cluster_centers_.T, s=70, color=OTHER, marker="x", label="for each client, 20"
    )
    right.set_title("Released centers")
    legend_above(right, 2, handletextpad=0.1)
    for axis in (left, middle, right):
        axis.set(aspect="equal", xlabel="first feature")
    left.set_ylabel("second feature")


# %%
# One fit protects a row, and one protects a client with all of its rows, which with forty clients
# requires a far larger budget. A fit to pooled rows is the reference.


def main(argv=None):
    options = parse_arguments(__doc__, "federated.png", argv)
    rng = np.random.default_rng(0)
    means, X, clients, server = clients_and_server(100 if options.quick else 500, rng)
    by_row = FederatedDPKMeans(K, epsilon=1.0, privacy_unit="row").fit(
        X, groups=clients, X_server=server
    )
    by_client = FederatedDPKMeans(K, epsilon=20.0).fit(X, groups=clients, X_server=server)
    pooled = DPKMeans(K, epsilon=1.0, bounds=1.4).fit(X)
    print(by_row.privacy_report_)
    print()
    print_table(
        ["fit", "epsilon", "unit", "largest error"],
        [
            ["federated", "1", "row", f"{far(means, by_row):.3f}"],
            ["federated", "20", "client", f"{far(means, by_client):.3f}"],
            ["pooled rows", "1", "row", f"{far(means, pooled):.3f}"],
        ],
    )
    print()
    print_table(
        ["round", "numbers to a client", "numbers from a client"],
        [
            [line["kind"], str(line["numbers_down"]), str(line["numbers_up"])]
            for line in by_row.communication_
        ],
    )
    save(
        lambda figure: draw(figure, X, clients, server, by_row, by_client), options.output, (11, 5)
    )


if __name__ == "__main__":
    main()
