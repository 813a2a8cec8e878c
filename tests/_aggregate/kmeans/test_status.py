"""What the status says of made-up signs, and of data where the truth is known."""

from dataclasses import replace

import numpy as np
import pytest

from sklearn_dp import DPKMeans
from sklearn_dp._aggregate.kmeans.status import Signs, coreset_in_words, in_words
from sklearn_dp._aggregate.kmeans.tuning import TUNING

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)

GOOD = Signs(
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


def status(signs, known="ok", epsilon=1.0):
    return in_words(signs, known, TUNING, epsilon)


@pytest.mark.parametrize(
    ("signs", "words"),
    [
        (replace(GOOD, one_center=True), "one center for all"),
        (replace(GOOD, loss=0.4), "mostly noise: about 40 % of the sum of squares"),
        (replace(GOOD, loss=3.0), "mostly noise: nearly all of the sum of squares"),
        (replace(GOOD, noise_share=0.5), "mostly noise: the clusters are narrower"),
        (replace(NOT_SHOWN, signal=10.0), "too few rows for this budget"),
        (
            replace(NOT_SHOWN, light=0.4),
            "mostly noise: noise alone could explain the counts of 20 of 50 clusters",
        ),
        (replace(NOT_SHOWN, loss=0.15), "no clusters shown"),
        (replace(ALIKE, loss=0.5), "mostly noise: about 50 % of the sum of squares"),
        (replace(ALIKE, loss=0.2, light=0.5), "no clusters shown: noise alone could explain"),
        (replace(GOOD, signal=20.0, explained_sd=0.4), "too few rows for this budget"),
        (
            replace(GOOD, signal=60.0, light=0.4),
            "mostly noise: noise alone could explain the counts of 20 of 50 clusters",
        ),
        (replace(GOOD, signal=60.0, loss=0.12, explained=0.5), "some clusters may be missing"),
        (
            replace(GOOD, light=0.02, uneven=0.3),
            "clusters may be missing: noise alone could explain the counts of 1 of 50 clusters",
        ),
        (
            replace(GOOD, light=0.4, explained=0.5),
            "clusters may be missing: noise alone could explain the counts of 20 of 50 clusters",
        ),
        (replace(GOOD, missed="clusters may be missing"), "clusters may be missing; about 3 times"),
        (replace(ALIKE, missed="clusters may be missing"), "clusters may be missing"),
        (Signs(10.0, 1.0, 5, False, 0.0), "too few rows for this budget"),
        (Signs(1000.0, 1.0, 0, False, 0.0), "no structure found"),
        (Signs(1000.0, 1.0, 5, False, 0.5), "mostly noise: the clusters are narrower"),
    ],
)
def test_each_trouble_has_its_words(signs, words):
    assert status(signs).startswith(words)
    assert status(signs, "no bound found") == "no bound found"


@pytest.mark.parametrize(
    "signs",
    [
        GOOD,
        replace(GOOD, n_leaves=0),
        replace(GOOD, light=0.5, uneven=0.12),
        replace(GOOD, uneven=0.5),
        replace(GOOD, signal=10.0),
        replace(GOOD, n_leaves=None, noise_share=np.nan),
        NOT_SHOWN,
        replace(GOOD, signal=60.0, loss=0.12),
        replace(GOOD, signal=60.0, explained=0.5),
        replace(GOOD, signal=200.0, loss=0.12, explained=0.5),
        replace(ALIKE, loss=0.4, light=0.35, noise_share=0.4, signal=10.0),
        Signs(1e3, 0.1, 5, False, 0.1),
    ],
)
def test_what_is_shown_to_be_good_is_called_ok(signs):
    assert status(signs) == "ok"


def test_the_remedy_is_in_numbers():
    """Noise of 0.5 is as much as the rest: three times the rows leave a tenth of that."""
    assert status(replace(GOOD, loss=0.5), epsilon=0.5).endswith(
        "; about 3 times the rows, or an epsilon of about 1.5, would help"
    )
    assert status(replace(GOOD, one_center=True, noise=1.0)).endswith(
        "; about 5 times the rows, or an epsilon of about 5, would help"
    )
    assert "times" not in status(replace(GOOD, one_center=True, noise=1e5))


def test_points_of_few_rows_are_where_the_noise_is():
    """In many features, or where there are hardly more of them than clusters."""

    def words(signal, noise, n_leaves):
        signs = Signs(signal, noise, n_leaves, False, 0.0)
        return coreset_in_words(signs, "ok", 2, TUNING, 1.0).split(":")[0]

    few = "too few rows for this budget"
    assert words(80.0, 0.2, 9) == few and words(120.0, 0.2, 9) == "ok"
    assert words(40.0, 0.1, 3) == few and words(40.0, 0.1, 4) == "ok"
    assert words(120.0, 0.1, 2) == "ok" and words(120.0, 0.1, 1) == "fewer points than n_clusters"


def test_useless_answers_are_not_called_ok():
    """Clusters of 64 rows that are narrow beside the noise; and the same with a large budget."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(16, 128))
    X = centers[np.arange(1024) % 16] + 0.01 * rng.normal(size=(1024, 128))
    X /= np.linalg.norm(X, axis=1).max()
    for epsilon, ok in ((1.0, False), (300.0, True)):
        found = [
            DPKMeans(16, epsilon=epsilon, bounds=1.0, random_state=seed).fit(X).status_
            for seed in range(3)
        ]
        assert [words == "ok" for words in found] == [ok] * 3
