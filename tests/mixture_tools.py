"""Mixtures and ways through a fit that several tests of mixtures share."""

import numpy as np
import pytest
from grid_tools import parts_in_memory, raw_table
from kernel_tools import open_session
from scipy.optimize import linear_sum_assignment
from scipy.stats import multivariate_normal

from sklearn_dp._aggregate.mixture.parts import MixtureContext, Settings
from sklearn_dp._aggregate.shared.bounds import CenterRadius
from sklearn_dp._parameters import domain_of
from sklearn_dp._privacy._units import Units
from sklearn_dp._published.separated_gaussians import Recursion, partition_entries, partition_parts
from sklearn_dp._queries._query import TableRows
from sklearn_dp._queries.grids import GridRows
from sklearn_dp._queries.halves import NODES
from sklearn_dp._queries.samples import ByPart
from sklearn_dp._queries.whitened import LABELS
from sklearn_dp._rows.rows import Rows
from sklearn_dp._status import Status
from sklearn_dp.mixture import KTupleOptions, PartitionOptions

FORMS = ("full", "tied", "diag", "spherical")
GENEROUS = {"rho": 1e6, "delta": 0.1}

POINTS = PartitionOptions(balls="points", separation=2.0)
LITERAL = PartitionOptions(balls="points", separation=5.0)  # as published

# Every way through a fit, on data of `audit_data`: its options, and where they lead.
WAYS = {
    "coreset": ({"method": "coreset", "epsilon": 20.0}, "coreset"),
    "joint balls": ({"method": "partition", "epsilon": 300.0}, "partition"),
    "no balls": ({"method": "partition", "epsilon": 3.0}, "partition, then coreset"),
    "published balls": ({"method": "partition", "options": POINTS, "epsilon": 3000.0}, "partition"),
    "spherical": (
        {"method": "partition", "covariance_type": "spherical", "bounds": 60.0, "epsilon": 300.0},
        "partition",
    ),
    "tuples": ({"method": "k_tuples", "options": KTupleOptions(4), "epsilon": 800.0}, "k_tuples"),
    "tuples that differ": (
        {"method": "k_tuples", "options": KTupleOptions(3), "epsilon": 30.0},
        "k_tuples, then coreset",
    ),
    "noisy centers": (
        {"method": "k_tuples", "epsilon": 3000.0, "options": KTupleOptions(12, "noisy_centers")},
        None,
    ),
    "too few for tuples": (
        {"method": "k_tuples", "options": KTupleOptions(50), "epsilon": 30.0},
        "coreset",
    ),
}


def audit_data(seed=0):
    return Mixture(3, 4, 30, 300, seed=seed).X


class Mixture:
    """Separated, rotated, anisotropic components."""

    def __init__(self, k, d, separation, n, weights=None, seed=0):
        rng = np.random.default_rng(seed)
        means = rng.normal(size=(k, d))
        apart = np.linalg.norm(means[:, None] - means, axis=2)[np.triu_indices(k, 1)]
        self.means = means * (separation / apart.min() if k > 1 else 1.0)
        self.weights = np.full(k, 1 / k) if weights is None else np.array(weights)
        self.covariances = np.empty((k, d, d))
        for j in range(k):
            rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
            self.covariances[j] = (rotation * rng.uniform(0.2, 1, d)) @ rotation.T
        self.X, self.labels = self.draw(n, rng)

    def draw(self, n, rng):
        labels = rng.choice(len(self.means), n, p=self.weights)
        roots = np.linalg.cholesky(self.covariances)
        noise = rng.normal(size=(n, self.means.shape[1]))
        return self.means[labels] + np.einsum("nij,nj->ni", roots[labels], noise), labels

    def match(self, model):
        cost = np.linalg.norm(self.means[:, None] - model.means_, axis=2)
        return linear_sum_assignment(cost)[1]

    def variations(self, model):
        """Total variation of each component, by Monte Carlo."""
        rng, out = np.random.default_rng(1), []
        for j, other in enumerate(self.match(model)):
            true = multivariate_normal(self.means[j], self.covariances[j])
            released = multivariate_normal(model.means_[other], model.covariances_[other])
            x = true.rvs(size=20000, random_state=rng)
            out.append(np.maximum(0, 1 - np.exp(released.logpdf(x) - true.logpdf(x))).mean())
        return np.array(out)


def session_of(*entries, rho=1e9, delta=0.1, seed=0):
    return open_session(*entries, rho=rho, delta=delta, random_state=seed)


def in_ball(n, center, radius, rng):
    """Uniform in a ball."""
    x = rng.normal(size=(n, len(center)))
    length = radius * rng.random(n) ** (1 / len(center))
    return center + x * (length / np.linalg.norm(x, axis=1))[:, None]


STEP = 1e-3  # length of a grid step of `two_balls`


def two_balls(d=3, apart=100.0, n=300):
    rng = np.random.default_rng(0)
    far = np.zeros(d)
    far[0] = apart
    X = np.vstack([in_ball(n, 0 * far, 1.0, rng), in_ball(n, far, 1.0, rng)])
    points = np.rint(X / STEP)
    return Rows.of(points, float(np.linalg.norm(points, axis=1).max()))


def context_of(session, table, radius, settings=None, known=None):
    """Rows of a table about the origin, all of them in a ball."""
    domain = domain_of(2 * radius, table.n_features)
    rows = GridRows.quantize(TableRows(table), domain)
    origin = np.zeros(table.n_features)
    place = CenterRadius(rows, domain, rows.ball / 2, 100.0, Status(), 0.0, origin, 1.0)
    return MixtureContext(session, place, rows, known, settings, "", lambda name: None)


def partition(X, k, *, rho=1e6, ratio=1.5, ball="joint", units=None, seed=0):
    settings = Settings(k, method="partition", options=PartitionOptions(ball, ratio))
    entries = partition_entries(rho * (1 - 1e-6), 0.01, settings, X.shape[1], "")
    session = session_of(*entries, rho=rho, seed=seed)
    radius = float(np.linalg.norm(X, axis=1).max()) + 1e-9
    domain = domain_of(2 * radius, X.shape[1])
    units = Units(len(X)) if units is None else units
    rows = GridRows.quantize(TableRows.in_memory(X, units), domain)
    size, center = float(len(X)), np.zeros(X.shape[1])
    place = CenterRadius(rows, domain, rows.ball / 2, size, Status(), 0.0, center, 1.0)
    roots, grow = [], Recursion.grow

    def grown(self, root):
        roots.append(root)
        grow(self, root)
        root.nodes = np.concatenate(raw_table(self.points).sums(_nodes)[0].in_order())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recursion, "grow", grown)
        context = MixtureContext(session, place, rows, None, settings, "", lambda name: None)
        parts = partition_parts(context)
    assert session.spent <= rho
    return parts, roots[0], session


def _nodes(part):
    nodes = part.state.get(NODES, np.zeros(part.units.n_rows, dtype=int))
    return part, (ByPart({part.source.number: nodes}),)


def labels_of(parts):
    """Of the rows of a table of one part, where they are."""
    (part,) = parts_in_memory(parts.rows.table)
    return part[LABELS]
