"""One report of all private steps of a pipeline."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_dp import DPPCA, DPKMeans, privacy_report, privatize

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning")
X = np.vstack([np.random.default_rng(0).normal(size=(400, 4)) + shift for shift in (0, 9)])


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_a_privatized_pipeline_tells_what_was_asked_for(epsilon):
    center = StandardScaler(with_std=False)
    theirs = make_pipeline(center, PCA(2), KMeans(2))
    twin = privatize(theirs, epsilon=epsilon, delta=1e-5).fit(X)
    report = privacy_report(twin)
    assert (
        report.epsilon == pytest.approx(epsilon, rel=1e-6) and report.epsilon <= epsilon * 1.000001
    )
    assert report.delta == pytest.approx(1e-5) and report.headline.startswith(
        f"({epsilon:g}, 1e-05)"
    )
    steps = [step.privacy_report_ for step in twin.named_steps.values()]
    assert report.rho == pytest.approx(sum(each.rho for each in steps))
    assert len(report.releases) == sum(len(each.releases) for each in steps)
    assert {line["release"].split("/")[0] for line in report.releases} == set(twin.named_steps)


def test_compositions_are_walked_as_they_were_fitted():
    union = FeatureUnion([("a", PCA(1)), ("same", "passthrough")])
    columns = ColumnTransformer([("b", PCA(1), [0, 1])], remainder=PCA(1))
    twin = privatize(Pipeline([("u", union), ("c", columns), ("k", KMeans(2))]), epsilon=4.0).fit(X)
    report = privacy_report(twin)
    names = {line["release"].split("/")[0] for line in report.releases}
    assert names == {"u__a", "c__b", "c__remainder", "k"}
    assert report.epsilon == pytest.approx(4.0, rel=1e-6)


def test_budgets_in_epsilon_add_up():
    pipeline = make_pipeline(DPPCA(2, epsilon=0.5), DPKMeans(2, epsilon=0.25, delta=1e-7)).fit(X)
    report = privacy_report(pipeline)
    assert report.epsilon == pytest.approx(0.75) and report.delta == pytest.approx(1.1e-6)
    alone = make_pipeline("passthrough", DPKMeans(2)).fit(X)
    assert privacy_report(alone) is alone[-1].privacy_report_
    assert privacy_report(alone[-1]) is alone[-1].privacy_report_


def test_what_has_no_report_is_refused():
    with pytest.raises(ValueError, match="no step of it is private"):
        privacy_report(make_pipeline(StandardScaler(), KMeans(2)))
    with pytest.raises(NotFittedError):
        privacy_report(make_pipeline(DPPCA(2), DPKMeans(2)))
