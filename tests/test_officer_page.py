"""The page for a privacy officer: from a fit, a pipeline, a search, a segment, a plan, a ledger."""

import json

import numpy as np
import pytest
from page_tools import Reader
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from sklearn_dp import (
    DPBySegment,
    DPKMeans,
    FriendlyMean,
    PrivacyBudget,
    PrivacyLedger,
    privacy_report,
    privatize,
    profile,
)
from sklearn_dp.model_selection import DPGridSearch

X = np.random.default_rng(0).normal(size=(400, 3))
MARK = 0.123456789101112  # a value of a row; no page has its digits
X[0] = MARK


def ledger(path=None):
    return PrivacyLedger(PrivacyBudget(epsilon=9.0, delta=1e-4), path)


MADE = {
    "fit": lambda book: DPKMeans(2, bounds=5.0, ledger=book).fit(X),
    "seeded": lambda book: FriendlyMean(bounds=5.0, random_state=0).fit(X),
    "groups": lambda book: FriendlyMean(bounds=5.0).fit(X, groups=np.arange(400) // 2),
    "segments": lambda book: DPBySegment(
        FriendlyMean(bounds=5.0), values=["n", "s"], ledger=book
    ).fit(X, by=["n", "s"] * 200),
    "segment": lambda book: MADE["segments"](book).estimators_["n"],
    "search": lambda book: DPGridSearch(
        DPKMeans(bounds=5.0), {"n_clusters": [2, 3]}, epsilon=4.0, ledger=book
    ).fit(X),
    "pipeline": lambda book: privatize(
        make_pipeline(PCA(2), DPKMeans(2)), epsilon=2.0, ledger=book
    ).fit(X),
    "profile": lambda book: profile(X, [(-4, 4)] * 3, 2, ledger=book),
}
SECTIONS = ("What was computed", "The guarantee", "Budget", "What is not protected", "Evidence")


@pytest.fixture(params=MADE)
def made(request, tmp_path):
    return request.param, MADE[request.param](ledger(tmp_path / "study.db")), tmp_path


def test_the_page_says_what_an_officer_asks(made):
    name, model, folder = made
    report = privacy_report(model)
    report.save(folder / "privacy.html")
    text = (folder / "privacy.html").read_text(encoding="utf-8")
    page, content = (
        Reader(text.replace("<!doctype html>", "")),
        json.loads((folder / "privacy.json").read_text(encoding="utf-8")),
    )
    texts = page.texts
    assert set(SECTIONS) <= set(texts) and report.told in texts and report.headline in texts
    assert any(each.startswith("sklearn-dp ") for each in texts)
    assert content["subject"]["Estimator"].startswith(type(model).__name__)
    assert content["guarantee"]["epsilon"] == report.epsilon
    assert content["guarantee"]["noise"] == ("seeded" if name == "seeded" else "system")
    assert len(content["releases"]) == len(report.releases) > 0
    assert f"Releases ({len(report.releases)})" in texts
    whole = [each for each in content["releases"] if each["sensitivity"] == 0.0]
    inside = content["releases_inside"]  # with noise of their own, and at no more than was paid
    noisy = [each for each in inside if each["sensitivity"] > 0 and each["sigma"] > 0]
    names = {each["release"] for each in whole}
    for each in {*names, *(row["release"] for row in inside if row not in noisy)}:
        costs = dict.fromkeys({row.get("part") for row in noisy}, 0.0)  # those of parts are side by
        for row in noisy:  # side
            costs[row.get("part")] += row["rho"] * row["release"].startswith(f"{each}/")
        own = costs.pop(None, 0.0) + max(costs.values(), default=0.0)
        rows = [row for row in (whole if each in names else inside) if row["release"] == each]
        assert 0 < own <= sum(row["rho"] for row in rows) * (1 + 1e-9)
    assert bool(whole) == (name in ("search", "profile"))
    assert any("random_state" in each for each in content["assumptions"]) == (name == "seeded")
    whole_person = any("pass groups" in each for each in content["not_protected"])
    assert whole_person == (name != "groups")
    alone = any("same ledger" in each for each in content["not_protected"])
    assert alone == (name in ("seeded", "groups"))
    if not alone:
        head = content["ledger"]["head"]
        assert head == ledger_head(folder) and any(head in each for each in texts)
        assert content["ledger"]["costs"] or name == "pipeline"  # whose steps share a charge
        assert any("left when the page was written" in each for each in texts)
    assert "123456789" not in text and "<script" not in text and "http" not in text


def ledger_head(folder):
    return PrivacyLedger(path=folder / "study.db").state().head


def test_a_plan_and_a_ledger_have_pages_too(tmp_path):
    DPKMeans(2).privacy_plan(3).report().save(tmp_path / "plan.html")
    page = (tmp_path / "plan.html").read_text(encoding="utf-8")
    assert "this is a plan" in page and "Verify" not in page
    book = ledger(tmp_path / "study.db")
    regions = book.disjoint("region", ["north", "<south>"])
    FriendlyMean(bounds=5.0, ledger=regions["north"]).fit(X)
    book.save(tmp_path / "ledger.html")
    text = (tmp_path / "ledger.html").read_text(encoding="utf-8")
    content = json.loads((tmp_path / "ledger.json").read_text(encoding="utf-8"))
    assert content["head"] == book.state().head and content["head"] in text
    assert [each["label"] for each in content["charges"]] == ["FriendlyMean"]
    assert content["spent"]["epsilon"] > 0 and "<south>" not in text and "&lt;south&gt;" in text
    with pytest.raises(ValueError, match="path must be"):
        book.save(tmp_path / "ledger.json")


def test_what_has_no_guarantee_says_so_first(tmp_path):
    pipeline = make_pipeline(PCA(2), DPKMeans(2, bounds=9.0)).fit(X)
    privacy_report(pipeline).save(tmp_path / "page.html")
    page = Reader((tmp_path / "page.html").read_text(encoding="utf-8")[len("<!doctype html>") :])
    assert page.texts[2].startswith("There is no guarantee")
    content = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))
    assert content["guarantee"]["epsilon"] == "inf" and content["guarantee"]["problems"]
    assert content["subject"]["Step 'pca': PCA"].startswith("not shown")
