"""Pictures and pages of topics: what is shown is what was released."""

import re

import matplotlib
import numpy as np
import pytest

from sklearn_dp import DPTopics
from sklearn_dp.inspection import TopicDisplay

matplotlib.use("Agg")
from matplotlib.figure import Figure  # noqa: E402


@pytest.fixture(scope="module")
def model():
    subjects = np.repeat([0, 1, 2], [600, 900, 40])
    texts = [["<b>tea", "cup"], ["$x$ & $y$", "code"], ["rare"]]
    X = np.eye(3)[subjects]
    return DPTopics(3, epsilon=20.0, random_state=0).fit(X, texts=[texts[s] for s in subjects])


def test_the_largest_come_first_with_their_errors(model):
    ax = Figure().subplots()
    display = TopicDisplay.from_estimator(model, ax=ax)
    assert display.ax_ is ax and display.figure_ is ax.figure
    sizes = [bar.get_width() for bar in display.bars_]
    assert sizes == sorted(model.sizes_, reverse=True) == [t.size for t in display.topics]
    (lines,) = display.errors_[2]
    ends = np.array([line[:, 0] for line in lines.get_segments()])
    np.testing.assert_allclose(ends.mean(axis=1), sizes)
    np.testing.assert_allclose(np.ptp(ends, axis=1), 2 * 1.96 * model.sizes_std_error_)
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert {labels[0], labels[1]} == {r"\$x\$ & \$y\$, code", "<b>tea, cup"} or len(labels) == 3
    ax.figure.canvas.draw()  # a dollar sign is no formula


def test_a_page_escapes_its_words_and_has_no_scripts(model):
    page = TopicDisplay.from_estimator(model).to_html()
    assert "&lt;b&gt;tea" in page and "<b>tea" not in page and "$x$ &amp; $y$" in page
    assert not re.search("<script|<img|href|src=|url\\(", page) and page.startswith("<!doctype")
    assert f"({model.privacy_report_.epsilon:.3g}, 1e-06)-differentially private" in page
    assert "for adding or removing one text" in page and "count texts" in page
    assert page.count("<i style=") == 3
    assert model.topics_[0].label not in ("", None)


X = np.repeat([[0.0, 0.0], [1.0, 1.0], [3.0, 0.0]], 300, axis=0)


def test_topics_of_noise_are_not_shown_unless_they_are_asked_for():
    X = np.eye(2)[np.arange(2000) % 2]
    model = DPTopics(12, random_state=0).fit(X, texts=["tea"] * 2000)
    shown = TopicDisplay.from_estimator(model)
    assert {topic.status for topic in shown.topics}.isdisjoint({"noise"})
    assert 0 < shown.n_hidden == 12 - len(shown.topics)
    page = TopicDisplay.from_estimator(model, n_topics=12).to_html()
    assert "size too noisy to use" in page and 'class="sk-dp-lost"' in page
