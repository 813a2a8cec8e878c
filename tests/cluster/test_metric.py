"""DPKMeans(metric="cosine"): rows are directions, and what that changes."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import cosine_distances
from sklearn.model_selection import GridSearchCV

from sklearn_dp import DPBySegment, DPKMeans, PrivacyBudget, PrivacyLedger
from sklearn_dp._privacy import _grid
from sklearn_dp._privacy._domain import Sphere, unit_rows
from sklearn_dp._rows.nearest import UnitRows
from sklearn_dp._rows.sparse_rows import SparseRows
from sklearn_dp.audit import replay_audit
from sklearn_dp.cluster._metric import Cosine
from sklearn_dp.inspection import utility_curve
from sklearn_dp.model_selection import DPGridSearch, PrivateScorer

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)
RELEASED = ("cluster_centers_", "cluster_centers_std_error_", "cluster_weights_", "inertia_")


def directions(n, d, k, spread=0.5, seed=0):
    """Rows of all lengths about k directions: the rows, and the directions."""
    rng = np.random.default_rng(seed)
    centers = unit_rows(rng.normal(size=(k, d)))
    rows = centers[rng.integers(k, size=n)] + spread * rng.normal(size=(n, d)) / np.sqrt(d)
    return rows * np.exp(2 * rng.normal(size=(n, 1))), centers


@pytest.fixture(scope="module")
def fitted():
    X, centers = directions(20_000, 8, 5)
    return DPKMeans(5, metric="cosine", random_state=0).fit(X), X, centers


def cosine(**options):
    return DPKMeans(3, **{"metric": "cosine", "random_state": 0, **options})


# -- what is released ------------------------------------------------------------------------------


def test_centers_are_the_directions_of_the_clusters(fitted):
    model, X, centers = fitted
    assert np.abs(np.linalg.norm(model.cluster_centers_, axis=1) - 1).max() < 1e-12
    products = model.cluster_centers_ @ centers.T
    assert set(products.argmax(axis=0)) == set(range(5)) and products.max(axis=0).min() > 0.999
    assert model.status_ == "ok" and (model.cluster_centers_status_ == "ok").all()
    assert not hasattr(model, "bound_")
    assert "bound" not in [entry.name for entry in model.privacy_plan(8).entries]


def test_numbers_after_a_fit_are_about_cosine_distances(fitted):
    model, X, _ = fitted
    exact = cosine_distances(X, model.cluster_centers_)
    np.testing.assert_allclose(model.transform(X), exact, atol=1e-12)
    assert np.array_equal(model.predict(X), exact.argmin(axis=1))
    assert np.array_equal(model.labels_, model.predict(X))
    cost = exact.min(axis=1).sum()
    assert model.score(X) == pytest.approx(-cost)
    weights = np.arange(len(X)) % 3
    assert model.score(X, sample_weight=weights) == pytest.approx(-weights @ exact.min(axis=1))
    assert abs(model.inertia_ - cost) < 4 * model.inertia_std_error_ + 0.02 * cost
    assert model.private_score(X, epsilon=1e5, delta=1e-6) == pytest.approx(-cost, rel=1e-4)
    capped = -np.minimum(exact.min(axis=1), 0.05).sum()
    found = model.private_score(X, epsilon=1e5, max_distance=0.05)
    assert found == pytest.approx(capped, rel=1e-4)
    one = cosine_distances(X, unit_rows(X).mean(axis=0)[None]).sum()
    assert model.explained_ == pytest.approx(1 - cost / one, abs=0.01)


@pytest.mark.parametrize(
    "d, k, n, spread", [(2, 2, 4000, 0.2), (3, 3, 4000, 0.4), (16, 5, 6000, 1)]
)
def test_errors_of_centers_hold_what_they_promise(d, k, n, spread):
    """Directions of true clusters are in their intervals; errors along a center are none."""
    inside, squares, claimed = [], [], []
    for seed in range(12):
        rng, true = np.random.default_rng(seed), np.eye(d)[:k]
        X = true[rng.integers(k, size=n)] + spread * rng.normal(size=(n, d)) / np.sqrt(d)
        model = DPKMeans(k, metric="cosine", random_state=seed).fit(X)
        order = (model.cluster_centers_ @ true.T).argmax(axis=0)
        low, high = model.confidence_interval()
        inside.append(((low[order] <= true) & (true <= high[order])).mean())
        squares.append(np.square(model.cluster_centers_[order] - true).mean())
        errors = model.cluster_centers_std_error_[order]
        claimed.append(np.square(errors).mean())
        assert (errors[true == 1] < 0.3 * errors[true == 0].min()).all()
    # Of 12 fits: 36 or more coordinates, which scatter by a fifth.
    assert np.mean(inside) > 0.85
    assert 0.6 < np.sqrt(np.mean(squares) / np.mean(claimed)) < 1.5


def test_a_center_that_the_noise_hides_says_so():
    """Two units cannot be seen: any direction, and no coordinate is called "ok"."""
    model = cosine().fit([[1.0, 0.0, 5.0], [0.0, 1.0, 2.0]])
    assert np.allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1.0)
    assert (model.cluster_centers_status_ == "noise").all() and not model.trustworthy_


def test_rows_without_a_direction_stay_at_the_origin():
    X, centers = directions(3000, 4, 3)
    zeros = np.zeros((1000, 4))
    model = cosine().fit(np.vstack([X, zeros]))
    assert model.size_ == pytest.approx(4000, rel=0.02)
    assert np.allclose(model.transform(zeros[:2]), 0.5)
    assert len(set(model.predict(zeros))) == 1
    only = cosine().fit(zeros)
    assert np.allclose(np.linalg.norm(only.cluster_centers_, axis=1), 1.0)
    # So many take a center of their own, whose direction is one of noise.
    more = DPKMeans(4, metric="cosine", epsilon=100.0, random_state=0).fit(np.vstack([X, zeros]))
    assert (more.cluster_centers_ @ centers.T).max(axis=0).min() > 0.999
    noise = (more.cluster_centers_status_ == "noise").all(axis=1)
    assert noise.sum() == 1 and more.cluster_weights_[noise] == pytest.approx(1000, rel=0.05)


# -- rows are scaled, each on its own --------------------------------------------------------------


def test_the_length_of_a_row_does_not_matter():
    """By powers of two, to the last bit: a fit that skips the scaling of rows fails here."""
    X, _ = directions(2000, 5, 3)
    lengths = 2.0 ** np.random.default_rng(1).integers(-40, 40, size=(2000, 1))
    one, other = cosine().fit(X), cosine().fit(X * lengths)
    for name in RELEASED:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for method in ("predict", "transform", "score"):
        assert np.array_equal(getattr(one, method)(X), getattr(one, method)(X * lengths))
    scores = [one.private_score(rows, random_state=3) for rows in (X, X * lengths)]
    assert scores[0] == scores[1]


def test_without_the_scaling_the_length_matters(monkeypatch):
    """The power of the test above."""
    X, _ = directions(2000, 5, 3)
    monkeypatch.setattr(Sphere, "center_rows", lambda self, rows: rows)
    one, other = cosine().fit(X), cosine().fit(X / 8)
    assert not np.array_equal(one.cluster_centers_, other.cluster_centers_)


@pytest.mark.parametrize("layout", ["C", "F", "view", "alone", "sparse", "float32"])
def test_a_direction_is_a_function_of_its_row(layout):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 7)) * 10.0 ** rng.integers(-150, 150, size=(300, 1))
    X[rng.random(X.shape) < 0.3] = 0.0
    if layout == "float32":
        X = (X / np.abs(X).max(axis=1, initial=1e-300)[:, None]).astype(np.float32)
    known = unit_rows(X)
    laid = {
        "F": lambda: unit_rows(np.asfortranarray(X)),
        "view": lambda: unit_rows(np.hstack([X, X])[:, :7]),
        "alone": lambda: np.vstack([unit_rows(row[None]) for row in X]),
        "sparse": lambda: np.vstack([unit_rows(part) for part in np.split(X, [1, 50, 51])]),
    }.get(layout, lambda: unit_rows(X.copy()))()
    assert np.array_equal(laid, known) and np.isfinite(known).all()
    there = X.any(axis=1)
    assert np.allclose(np.linalg.norm(known[there], axis=1), 1.0) and not known[~there].any()


def test_a_view_reads_like_the_scaled_array():
    X, _ = directions(50, 3, 2)
    view = UnitRows(X.astype(np.float32))
    assert len(view) == 50 and view.shape == (50, 3) and view[:9].dtype == np.float32
    assert np.array_equal(view[np.array([4, 2])][:], view[:][[4, 2]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_directions_of_sparse_rows_stay_sparse(dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 90)) * 10.0 ** rng.integers(-30, 30, size=(300, 1))
    X = np.where(rng.random(X.shape) < 0.05, X, 0.0).astype(dtype)
    X[7] = 0.0
    held = sparse.csr_array(X)
    found, known = Cosine().rows(SparseRows(held)), Cosine().rows(X)
    assert isinstance(found, SparseRows) and found.dtype == dtype
    assert np.array_equal(found[0:300], known[0:300]) and np.array_equal(held.toarray(), X)
    model = cosine().fit(X)
    assert np.array_equal(model.predict(held), model.predict(X))


# -- privacy ---------------------------------------------------------------------------------------

EXTREME = {
    "far": np.array([[1e150, -1e150, 3.0]]),
    "tiny": np.array([[5e-324, 0.0, 0.0]]),
    "zero": np.zeros((1, 3)),
    "opposite": np.array([[-1.0, -1.0, -1.0]]),
}


@pytest.mark.quick("*-1000.0", "opposite-1.0")
@pytest.mark.parametrize("epsilon", [1.0, 1000.0])
@pytest.mark.parametrize("name", EXTREME)
def test_replays_of_extreme_rows(name, epsilon):
    X = np.vstack([EXTREME[name], directions(80, 3, 3)[0]])
    for groups in (None, np.arange(81) // 3):
        model = DPKMeans(3, metric="cosine", epsilon=epsilon)
        result = replay_audit(model, X, groups=groups)
        assert result.violations == []
        assert name == "zero" or max(result.ratios.values()) > 0.9


def test_no_claim_relies_on_the_scaling(monkeypatch):
    """Rows a thousand times too long: the grid clips them, and nothing is violated. Without its
    clip they are violations, so the audit would see a scaling that is relied on."""
    X = np.vstack([np.full((1, 3), 50.0), directions(80, 3, 3)[0]])
    model = DPKMeans(3, metric="cosine", epsilon=1000.0)
    monkeypatch.setattr(Sphere, "center_rows", lambda self, rows: 1000.0 * rows)
    assert replay_audit(model, X).violations == []
    monkeypatch.setattr(_grid, "clip_integer_rows", lambda rows, *others: rows)
    monkeypatch.setattr(Sphere, "center_rows", lambda self, rows: 1.4 * unit_rows(rows))
    assert replay_audit(model, X).violations


def test_the_audit_sees_a_scale_that_all_rows_share(monkeypatch):
    """Each row is scaled on its own: by the longest one, one row would change all others."""

    def together(self, rows):
        return rows / np.linalg.norm(rows, axis=1).max()

    monkeypatch.setattr(Sphere, "center_rows", together)
    X = np.vstack([np.full((1, 3), 1e3), directions(80, 3, 3)[0]])
    assert replay_audit(DPKMeans(3, metric="cosine", epsilon=1000.0), X).violations


def test_pickles_hold_releases_and_answer_as_before(fitted):
    model, X, _ = fitted
    again = pickle.loads(pickle.dumps(model))
    assert not hasattr(again, "labels_") and again.metric == "cosine"
    assert np.array_equal(again.transform(X[:9]), model.transform(X[:9]))


# -- all kinds of rows -----------------------------------------------------------------------------


def test_sparse_rows_and_parts_have_the_bits_of_an_array():
    X, _ = directions(600, 4, 3)
    X[np.random.default_rng(0).random(X.shape) < 0.4] = 0.0
    known = cosine().fit(X)
    for model in (
        cosine().fit(sparse.csr_array(X)),
        cosine().fit_partitions(np.split(X, [10, 300])),
        cosine(n_jobs=2).fit(np.asfortranarray(X)),
    ):
        for name in RELEASED:
            assert np.array_equal(getattr(model, name), getattr(known, name)), name
        assert np.array_equal(model.labels_, known.labels_)
    found = known.predict(sparse.csr_array(X)), known.transform(sparse.csr_array(X))
    assert np.array_equal(found[0], known.labels_)
    assert np.array_equal(found[1], known.transform(X))


def test_single_precision_weights_and_groups():
    X, centers = directions(6000, 4, 3)
    single = cosine().fit(X.astype(np.float32))
    assert single.cluster_centers_.dtype == single.transform(X[:5].astype("f4")).dtype == np.float32
    assert (single.cluster_centers_ @ centers.T).max(axis=1).min() > 0.99
    weighted = cosine(max_weight=2.0).fit(X, sample_weight=np.arange(6000) % 3)
    assert weighted.size_ == pytest.approx(6000, rel=0.05)
    assert np.array_equal(weighted.labels_, weighted.predict(X))
    grouped = cosine().fit(X, groups=np.arange(6000) // 2)
    assert grouped.privacy_report_.unit == "group"
    for model in (weighted, grouped):
        assert (model.cluster_centers_ @ centers.T).max(axis=1).min() > 0.99


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_feature_has_two_directions(sign):
    X = sign * np.append(np.full(3000, 7.0), np.full(1000, -0.2))[:, None]
    model = DPKMeans(2, metric="cosine", random_state=0).fit(X)
    assert np.array_equal(model.cluster_centers_.ravel(), [sign, -sign])
    assert model.score(X) == 0


def test_the_number_of_clusters_is_found():
    X, _ = directions(20_000, 12, 6, 0.6)
    assert DPKMeans("auto", metric="cosine", random_state=0).fit(X).n_clusters_ == 6
    X, _ = directions(20_000, 3, 3, 0.4, seed=4)
    model = DPKMeans("auto", metric="cosine", criterion="silhouette", random_state=0).fit(X)
    assert model.n_clusters_ == 3


def test_given_centers_are_directions():
    X, centers = directions(5000, 4, 3)
    model = cosine(init=100 * centers).fit(X)
    assert (model.cluster_centers_ @ centers.T).max(axis=1).min() > 0.99


# -- what goes with it, and what does not ----------------------------------------------------------


def test_scikit_learn_gives_the_same_labels(fitted):
    model, X, _ = fitted
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    twin = model.to_sklearn()
    assert np.array_equal(twin.predict(X), model.labels_)
    assert twin[-1].inertia_ == pytest.approx(2 * model.inertia_)
    assert twin.score(X) == pytest.approx(2 * model.score(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        named = DPKMeans(5, metric="cosine", random_state=None).fit(frame)
        found = named.to_sklearn().predict(frame)
    assert np.array_equal(found, named.labels_)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"bounds": 1.0}, "bounds must be None with metric"),
        ({"bounds": (-1, 1)}, "bounds must be None with metric"),
        ({"metric": "manhattan"}, "metric must be one of"),
        ({"metric": None}, "metric must be one of"),
        ({"metric": np.array(["cosine", "x"])}, "metric must be one of"),
    ],
)
def test_wrong_parameters_are_refused_before_the_charge(options, words):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-6))
    with pytest.raises(ValueError, match=words):
        cosine(ledger=ledger, **options).fit(np.ones((5, 2)))
    assert not ledger.entries


def test_there_are_no_days():
    assert not hasattr(cosine(), "partial_fit")
    with pytest.raises(AttributeError, match='has no partial_fit with metric="cosine"'):
        cosine().partial_fit  # noqa: B018


def test_searches_compare_directions():
    """By silhouettes of directions; costs in the space of rows are refused before the charge."""
    X, _ = directions(5000, 6, 3, 0.3)
    ledger = PrivacyLedger(PrivacyBudget(epsilon=50.0, delta=1e-3))
    search = DPGridSearch(
        cosine(random_state=None),
        {"n_clusters": [2, 3, 6]},
        epsilon=20.0,
        scoring="silhouette",
        random_state=0,
    )
    assert search.fit(X).best_params_ == {"n_clusters": 3}
    for grid in ({"criterion": ["auto", "bic"]}, {"metric": ["cosine", "euclidean"]}):
        options = {"scoring": "cost", "max_distance": 1.0, "ledger": ledger}
        with pytest.raises(ValueError, match="scoring='cost' is in Euclidean distances"):
            DPGridSearch(DPKMeans(3, metric="cosine"), grid, **options).fit(X)
    assert not ledger.entries
    own = PrivateScorer(lambda model, x, y: -model.transform(x[None]).min(), low=-1.0, high=0.0)
    grid = {"metric": ["cosine", "euclidean"]}
    DPGridSearch(DPKMeans(3), grid, epsilon=20.0, scoring=own).fit(X[:500])
    public = GridSearchCV(cosine(random_state=None), {"n_clusters": [2, 3]}, cv=2).fit(X)
    assert public.best_params_ == {"n_clusters": 3}


def test_curves_ask_for_a_metric():
    X, _ = directions(500, 3, 3)
    options = {"n_units": 1000, "epsilons": [1.0], "n_repeats": 1}
    with pytest.raises(TypeError, match="metric must be given"):
        utility_curve(cosine(random_state=None), X, **options)
    options["metric"] = lambda model, rows: model.score(rows)
    found = utility_curve(cosine(random_state=None), X, **options)
    assert np.isnan(found.reference)  # KMeans minimizes something else


def test_segments_borrow_no_directions():
    """A mean of directions is none: segments have centers of length 1, each its own."""
    X, _ = directions(4000, 4, 3)
    key = np.arange(4000) % 4
    model = DPBySegment(DPKMeans(3, metric="cosine"), values=range(4), random_state=0)
    model.fit(X, by=key)
    for each in model.estimators_.values():
        assert np.allclose(np.linalg.norm(each.cluster_centers_, axis=1), 1.0)
