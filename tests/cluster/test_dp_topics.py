"""Private topics: clusters of embeddings, and what they are called."""

import pickle
import re
import warnings

import numpy as np
import pytest

from sklearn_dp import DPTopics, PrivacyBudget, PrivacyLedger
from sklearn_dp.exceptions import BudgetExceededError, UtilityWarning

SUBJECTS = {
    "delivery": "When will my parcel arrive? The courier lost my parcel number {}",
    "login": "I cannot log in: the password of my account {} is wrong, reset the password",
    "refund": "Please refund the invoice {}, I paid it twice; refund my card",
}
WORDS = [
    *("parcel", "courier", "arrive", "password", "account", "reset", "refund", "invoice", "card"),
    *("broken", "please", "wrong"),
]


def corpus(n=3000, seed=0):
    """Embeddings that know the subject, texts, and the subjects."""
    rng = np.random.default_rng(seed)
    subjects = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    forms = list(SUBJECTS.values())
    X = 5 * np.eye(3)[subjects] + rng.normal(size=(n, 3)) * 0.5
    return X, [forms[s].format(f"nr{i}") for i, s in enumerate(subjects)], subjects


@pytest.mark.parametrize("vocabulary", [None, WORDS])
def test_topics_are_called_by_the_words_that_tell_them_from_others(vocabulary):
    X, texts, subjects = corpus()
    model = DPTopics(3, vocabulary=vocabulary, epsilon=2.0, random_state=0).fit(X, texts=texts)
    assert model.status_ == "ok" and model.trustworthy_
    largest = np.argmax(np.bincount(subjects))
    assert np.mean(model.predict(X)[subjects == largest] == np.argmax(model.sizes_)) > 0.99
    told = [next(s for s in SUBJECTS.values() if t.keywords[0] in s.lower()) for t in model.topics_]
    forms = np.array(list(SUBJECTS.values()), dtype=object)[subjects]
    assert np.mean(np.array(told, dtype=object)[model.predict(X)] == forms) > 0.99
    for topic, text in zip(model.topics_, told, strict=True):
        assert set(topic.keywords) <= set(re.findall(r"\w+", text.lower())) - {"my", "the"}
    exact = np.bincount(model.predict(X), minlength=3)
    np.testing.assert_allclose(model.sizes_, exact, atol=5 * model.sizes_std_error_[0])
    for topic, size in zip(model.topics_, exact, strict=True):
        assert topic.label == ", ".join(topic.keywords[:3]) and topic.status == "ok"
        # Each text of the subject has the word.
        assert topic.counts[0] == pytest.approx(size, abs=5 * topic.count_std_error)
    assert model.word_counts_.shape == (3, len(model.words_))
    assert (model.threshold_ is None) == (vocabulary is not None)
    low, high = model.confidence_interval()
    assert ((low < exact) & (exact < high)).all()
    assert "sizes_" in repr(model.summary())


def test_words_of_one_text_stay_hidden():
    X, texts, _ = corpus()
    texts[7] = "zanzibar " * 20
    model = DPTopics(3, random_state=0).fit(X, texts=texts)
    assert model.words_ and "zanzibar" not in model.words_
    assert not any("nr" in word for word in model.words_)
    shown = repr(vars(model)) + repr(pickle.dumps(model))
    assert "zanzibar" not in shown and "nr17" not in shown and "my parcel" not in shown


def test_one_report_and_one_charge_cover_all_of_it():
    X, texts, _ = corpus(500)
    ledger = PrivacyLedger(PrivacyBudget(1.0, 1e-6))
    for vocabulary in (None, WORDS):
        model = DPTopics(3, vocabulary=vocabulary, ledger=ledger, epsilon=0.5, delta=5e-7)
        plan = model.privacy_plan(3)
        assert plan.epsilon <= 0.5 and [entry.name for entry in plan.entries] == [
            *("clusters", "sizes", "keywords")
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UtilityWarning)
            model.fit(X, texts=texts)
        assert model.privacy_report_ == model.estimator_.privacy_report_
        assert model.privacy_report_.epsilon == plan.epsilon and len(ledger.entries) in (1, 2)
    with pytest.raises(BudgetExceededError):
        model.fit(X, texts=texts)


def test_a_clusterer_that_is_kept_holds_releases_only():
    X, texts, _ = corpus(500)
    model = DPTopics(3, random_state=0, n_jobs=2, epsilon=50.0).fit(X, texts=texts)
    assert not hasattr(model.estimator_, "labels_") and model.estimator_.n_jobs is None
    assert [name for name in vars(model.estimator_) if name[0] == "_"] == ["_provenance", "_place"]
    assert model.estimator_.metric == "cosine"
    assert np.array_equal(model.predict(X), model.estimator_.predict(X))
    assert np.array_equal(model.predict(7 * X), model.predict(X))


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"n_topics": 0}, ValueError, "n_topics"),
        ({"n_topics": "many"}, ValueError, "n_topics"),
        ({"keywords_per_text": 0}, ValueError, "keywords_per_text"),
        ({"n_keywords": 2.5}, TypeError, "n_keywords"),
        ({"vocabulary": "parcel"}, TypeError, "vocabulary"),
        ({"vocabulary": ["parcel", "parcel"]}, ValueError, "vocabulary"),
        ({"vocabulary": []}, ValueError, "vocabulary"),
        ({"vocabulary": ["parcel", 3]}, ValueError, "vocabulary"),
        ({"vocabulary": [f"w{i}" for i in range(2**15)], "n_topics": 1000}, ValueError, "vocab"),
        ({"stop_words": "french"}, ValueError, "stop_words"),
        ({"stop_words": 3}, TypeError, "stop_words"),
    ],
)
def test_errors_name_the_parameter_and_cost_nothing(options, error, words):
    ledger = PrivacyLedger(PrivacyBudget(1.0, 1e-6))
    with pytest.raises(error, match=words):
        DPTopics(**options, ledger=ledger).fit(np.ones((5, 2)), texts=["a"] * 5)
    assert len(ledger.entries) == 0


def test_texts_in_the_wrong_place_or_number_are_refused_without_quoting_them():
    X, texts, _ = corpus(20)
    pandas, ledger = pytest.importorskip("pandas"), PrivacyLedger(PrivacyBudget(1.0, 1e-6))
    for y in (texts, np.array(texts), pandas.Series(texts), [text.split() for text in texts]):
        with pytest.raises(TypeError, match="texts=") as seen:
            DPTopics(2, ledger=ledger).fit(X, y)
        assert "parcel" not in str(seen.value) and len(ledger.entries) == 0
    for wrong in (texts[:19], "parcel" * 20, 3, {"parcel": 1}):
        with pytest.raises(ValueError, match="texts must hold a text") as seen:
            DPTopics(2).fit(X, texts=wrong)
        assert "parcel" not in str(seen.value)


def test_texts_of_a_table_in_parts_are_refused_and_not_left_out():
    X, texts, _ = corpus(20)
    ledger = PrivacyLedger(PrivacyBudget(1.0, 1e-6))
    for given in (texts, [texts[:10], texts[10:]]):
        with pytest.raises(TypeError, match="^X must be in memory for texts"):
            DPTopics(2, ledger=ledger).fit([X[:10], X[10:]], texts=given)
    assert ledger.entries == ()
