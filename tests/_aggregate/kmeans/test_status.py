"""What the status says of made-up signs, and of data where the truth is known."""

import re
from dataclasses import replace

import numpy as np
import pytest

from sklearn_dp import DPKMeans
from sklearn_dp._aggregate.kmeans.result import Diagnostics, format_status
from sklearn_dp._aggregate.shared.advice import plain
from sklearn_dp._aggregate.shared.bounds import NO_BOUND
from sklearn_dp._status import Status

GOOD = Diagnostics(
    signal=1000.0,
    noise=0.1,
    n_leaves=5,
    one_center=False,
    noise_share=0.01,
    loss=0.01,
    light=0.0,
    n_clusters=50,
    explained=0.8,
    explained_sd=0.05,
)
NOT_SHOWN = replace(GOOD, explained=0.05, explained_sd=0.3)
ALIKE = replace(GOOD, explained=0.05)


def budget(times):
    return f"epsilon = {plain(times)}"


budget.units = "rows"


def status(signs, known=()):
    return str(format_status(signs, Status(known), budget))


@pytest.mark.parametrize(
    ("signs", "words"),
    [
        (replace(GOOD, one_center=True), "only one center was released"),
        (replace(GOOD, loss=0.4), "mostly noise: about 40% of the sum of squares"),
        (replace(GOOD, loss=3.0), "mostly noise: nearly all of the sum of squares"),
        (replace(GOOD, noise_share=0.5), "mostly noise: the clusters are narrower"),
        (replace(NOT_SHOWN, signal=10.0), "too few rows for this budget"),
        (replace(NOT_SHOWN, light=0.4), "mostly noise: 20 of 50 clusters may be empty"),
        (replace(NOT_SHOWN, loss=0.15), "no evidence of clusters"),
        (replace(ALIKE, loss=0.5), "mostly noise: about 50% of the sum of squares"),
        (replace(ALIKE, loss=0.2, light=0.5), "no clusters shown: 25 of 50 clusters may be empty"),
        (replace(GOOD, signal=20.0, explained_sd=0.4), "too few rows for this budget"),
        (replace(GOOD, signal=60.0, light=0.4), "mostly noise: 20 of 50 clusters may be empty"),
        (replace(GOOD, signal=60.0, loss=0.12, explained=0.5), "some clusters may be missing"),
        (
            replace(GOOD, light=0.02, uneven=0.3),
            "clusters may be missing: 1 of 50 clusters may be empty",
        ),
        (
            replace(GOOD, light=0.4, explained=0.5),
            "clusters may be missing: 20 of 50 clusters may be empty",
        ),
        (
            replace(GOOD, missed="clusters may be missing"),
            "clusters may be missing; use more rows, a",
        ),
        (replace(ALIKE, missed="clusters may be missing"), "clusters may be missing"),
        (Diagnostics(10.0, 1.0, 5, False, 0.0), "too few rows for this budget"),
        (Diagnostics(1000.0, 1.0, 0, False, 0.0), "no structure found"),
        (Diagnostics(1000.0, 1.0, 5, False, 0.5), "mostly noise: the clusters are narrower"),
    ],
)
def test_each_trouble_has_its_words(signs, words):
    assert status(signs).startswith(words)
    assert status(signs, [NO_BOUND]) == str(NO_BOUND)


@pytest.mark.parametrize(
    ("signs", "remedy"),
    [
        # Noise of 0.5 is as much as the rest: three times the rows leave a tenth of that.
        (replace(GOOD, loss=0.5, size=1e3), "about 3 times as many rows (3,000 in all), epsilon ="),
        (replace(GOOD, loss=0.5), "at least 3 times as many rows, epsilon = 3 or fewer clusters"),
        # Another sign of noise asks for more than that.
        (replace(GOOD, loss=0.5, even=7.0, size=1e3), "about 7 times as many rows (7,000 in all)"),
        (replace(GOOD, one_center=True, noise=1.0, size=1e3), "at least 5 times as many rows, eps"),
        (replace(GOOD, one_center=True, noise=1e5), "fewer clusters"),
        (replace(GOOD, loss=0.5, n_clusters=1), "at least 3 times as many rows or epsilon = 3"),
        # Where clusters of the same size would be seen, it is not the rows that are missing.
        (replace(NOT_SHOWN, light=0.4, even=0.9), "fewer clusters"),
        (replace(NOT_SHOWN, light=0.4, even=0.9, loose=True), "tighter bounds or fewer clusters"),
        (replace(GOOD, missed="some are missing"), "more rows, a larger epsilon or more clusters"),
        (Diagnostics(10.0, 0.1, 5, False, 0.0), "at least 3 times as many rows or epsilon = 3"),
    ],
)
def test_remedies_are_computed_or_not_in_numbers(signs, remedy):
    assert status(signs).partition("; use ")[2].startswith(remedy)


def blobs(n, k, d, seed):
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-8, 8, size=(k, d))
    return centers[rng.integers(k, size=n)] + 0.5 * rng.normal(size=(n, d))


def test_as_many_rows_or_as_much_budget_as_a_status_asks_for_help():
    """Of these 14 remedies 12 are enough."""

    def fit(n, k, d, epsilon, seed):
        model = DPKMeans(k, epsilon=epsilon, delta=1e-6, bounds=(-10, 10), random_state=seed)
        return model.fit(blobs(n, k, d, seed))

    found = []
    for n, k, d, epsilon in (
        *((300, 5, 2, 1.0), (1000, 5, 10, 0.3), (1000, 20, 4, 1.0)),
        *((3000, 30, 2, 0.3), (1000, 50, 8, 1)),
    ):
        for seed in range(2):
            asked = r"use about ([\d.]+) times .* epsilon = ([\d.]+) or"
            match = re.search(asked, str(fit(n, k, d, epsilon, seed).messages_))
            if match is None:
                continue
            times, more = match.groups()
            found += [fit(int(n * float(times)), k, d, epsilon, seed)]
            found += [fit(n, k, d, float(more), seed)]
    assert len(found) == 14 and sum(model.trustworthy_ for model in found) >= 12


def test_useless_answers_are_not_called_ok():
    """Clusters of 64 rows that are narrow beside the noise; and the same with a large budget."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(16, 128))
    X = centers[np.arange(1024) % 16] + 0.01 * rng.normal(size=(1024, 128))
    X /= np.linalg.norm(X, axis=1).max()
    for epsilon, ok in ((1.0, False), (300.0, True)):
        found = [
            DPKMeans(16, epsilon=epsilon, bounds=1.0, random_state=seed).fit(X).trustworthy_
            for seed in range(3)
        ]
        assert found == [ok] * 3
