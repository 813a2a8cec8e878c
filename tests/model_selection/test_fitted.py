"""What scores see of a row is a function of that row alone, whatever the steps are made of."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from sklearn_dp import DPGaussianMixture, DPKMeans, SampleAndAggregate
from sklearn_dp.audit import neighboring_pairs, replay_audit
from sklearn_dp.model_selection import DPGridSearch, PrivateScorer
from sklearn_dp.model_selection._candidates import Fitted, transformed

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(101, 17))


def centered(rows):
    """A function of all rows: none of them may be in the place of a step."""
    return rows - rows.mean(axis=0)


def jittered(rows):
    """Draws from numpy's global generator."""
    return rows + np.random.normal(size=rows.shape)  # noqa: NPY002


@pytest.mark.parametrize(
    "step",
    [
        PCA(3).fit(X),
        StandardScaler().fit(X),
        FunctionTransformer(centered),
        FunctionTransformer(jittered),
        SampleAndAggregate(FunctionTransformer(centered), output=("n_features_in_",)).fit(X),
    ],
    ids=["PCA", "scaler", "of all rows", "drawn", "of all rows, inside a private step"],
)
def test_rows_beside_a_row_do_not_show(step):
    """The matrix product of PCA rounds the last rows of this table otherwise than alone."""
    whole = transformed(step, X)
    for some in (slice(1, None), slice(None, -1), slice(50, 51), slice(0, 0)):
        assert np.array_equal(transformed(step, X[some]), whole[some])


def test_log_densities_of_rows_do_not_depend_on_others():
    mixture = DPGaussianMixture(3, bounds=9.0, epsilon=50.0, random_state=0).fit(X[:, :3])
    fitted = Fitted([("", mixture)])
    whole = fitted.log_density(X[:, :3])
    assert whole == pytest.approx(mixture.score_samples(X[:, :3]), rel=1e-9)
    for i in (0, 1, 99, 100):
        assert fitted.log_density(X[i : i + 1, :3]).tobytes() == whole[i : i + 1].tobytes()


def leaves(model, x, y):
    """A score that changes its row, and ends the process at a row far out."""
    if np.abs(x).max() > 1e5:
        raise SystemExit("7319")
    x[:] = 0
    return 0.5


@pytest.mark.parametrize("step", [centered, None], ids=["a function of all rows", "an exit"])
def test_replay(step):
    """Before, one row moved the sums by 70 times the claim, or decided on its candidate."""
    options = {"epsilon": 20.0, "random_state": 0}
    if step is None:
        estimator, grid = DPKMeans(bounds=9.0), {"n_clusters": [2, 3]}
        options["scoring"] = PrivateScorer(leaves, 0.0, 1.0)
    else:
        estimator = make_pipeline(FunctionTransformer(step), DPKMeans(bounds=9.0))
        grid = {"dpkmeans__n_clusters": [2, 3]}
    rows = 3 * X[:40, :3]
    pairs = neighboring_pairs(rows, 0, kinds=["random", "far", "remove"])
    result = replay_audit(DPGridSearch(estimator, grid, **options), rows, pairs, strangers=False)
    assert result.violations == [] and result.n_pairs == 3
