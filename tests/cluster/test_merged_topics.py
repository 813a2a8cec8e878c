"""Topics that are merged after a fit: of released values, and with their errors."""

import numpy as np
import pytest

from sklearn_dp import DPTopics

WORDS = ["parcel", "courier", "password", "account", "refund", "invoice"]


@pytest.fixture(scope="module")
def fitted():
    """Three subjects in ten features, each of 4,000 texts, of which eight topics are asked for."""
    rng = np.random.default_rng(0)
    subjects = np.repeat(np.arange(3), 4000)
    X = 6 * np.eye(10)[subjects] + rng.normal(size=(12_000, 10))
    texts = [WORDS[2 * subject : 2 * subject + 2] for subject in subjects.tolist()]
    model = DPTopics(8, vocabulary=WORDS, epsilon=4.0, random_state=0).fit(X, texts=texts)
    return model, X, subjects


def test_sums_and_their_errors_by_hand(fitted):
    model, X, _ = fitted
    labels = np.array([5, 5, 0, 5, 2, 2, 0, 5])
    merged = model.merge(labels)
    np.testing.assert_array_equal(merged.center_topics_, [2, 2, 0, 2, 1, 1, 0, 2])
    np.testing.assert_array_equal(merged.predict(X), merged.center_topics_[model.predict(X)])
    np.testing.assert_allclose(merged.sizes_[2], model.sizes_[labels == 5].sum())
    np.testing.assert_allclose(merged.word_counts_[1], model.word_counts_[labels == 2].sum(axis=0))
    np.testing.assert_allclose(
        merged.sizes_std_error_, model.sizes_std_error_[0] * np.sqrt([2, 2, 4])
    )
    errors = [topic.count_std_error for topic in merged.topics_]
    np.testing.assert_allclose(errors, model.word_count_std_error_ * np.sqrt([2, 2, 4]))
    assert merged.word_count_std_error_ == max(errors)
    # Once more, and at once: the same.
    again = merged.merge([0, 1, 0])
    np.testing.assert_allclose(again.sizes_, model.merge((labels == 2).astype(int)).sizes_)
