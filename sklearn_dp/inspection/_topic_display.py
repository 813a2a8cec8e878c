"""Released topics: a picture of their sizes and keywords, and a page to publish."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._base import check_integer
from .._privacy._html import framed
from ..cluster import DPTopics, Topic
from ._style import (
    ACCENT,
    INK,
    MUTED,
    PALE,
    axes_for,
    has_matplotlib,
    noisy_number,
    plain_text,
    title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TopicDisplay"]

_IN_PICTURE, _IN_PAGE = 5, 10  # keywords
_WORDS = {"noise": "size lost in noise", "unnamed": "no keyword stands out"}
_STYLE = """<style>
.sk-dp-topics{display:grid;grid-template-columns:minmax(9em,1fr) minmax(6em,1fr) 3fr;gap:.5em 1em;
align-items:baseline}
.sk-dp-topics>b{overflow-wrap:anywhere}
.sk-dp-topics i{display:block;height:.55em;border-radius:.15em;background:#0072b2}
.sk-dp-topics .sk-dp-lost i{background:none;border:1px dashed var(--sklearn-color-text-muted)}
.sk-dp-topics small{color:var(--sklearn-color-text-muted);font-variant-numeric:tabular-nums}
.sk-dp-topics .sk-dp-words span{display:inline-block;margin-right:.9em}
</style>"""


class TopicDisplay:
    """Topics of a private fit, the largest first: a plot, and a page of HTML.

    Use :meth:`from_estimator`, which draws, and returns the display. :meth:`to_html` makes a page,
    which a notebook shows.

    Parameters
    ----------
    topics : sequence of Topic
        Released topics, in the order in which they are shown.
    n_hidden : int
        How many more topics there are.
    heading : str
        Title of plot and page.
    unit : str
        What is counted: "texts" or "groups".
    guarantee : str
        Sentence below the topics.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the topics were drawn.
    figure_ : matplotlib Figure
        Of these axes.
    bars_ : matplotlib BarContainer
        The sizes.
    errors_ : matplotlib ErrorbarContainer
        Their 95% confidence intervals, for the noise.

    Notes
    -----
    Everything that is shown has been released, so plot and page may be published.

    Examples
    --------
    >>> from sklearn_dp.inspection import TopicDisplay
    >>> display = TopicDisplay.from_estimator(model)  # doctest: +SKIP
    >>> page = display.to_html()  # doctest: +SKIP
    """

    def __init__(
        self, topics: Sequence[Topic], n_hidden: int, heading: str, unit: str, guarantee: str
    ) -> None:
        self.topics = topics
        self.n_hidden = n_hidden
        self.heading = heading
        self.unit = unit
        self.guarantee = guarantee

    @classmethod
    def from_estimator(
        cls, estimator: DPTopics, *, n_topics: int | None = None, ax: Axes | None = None
    ) -> Self:
        """Draw the topics of a fitted estimator.

        Parameters
        ----------
        estimator : DPTopics
            Fitted.
        n_topics : int, optional
            How many topics to show, the largest; by default all whose size is not lost in noise, or
            one if there are none.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        display : TopicDisplay
            With the artists as attributes. If Matplotlib is not installed, nothing is drawn: pages
            do not need it.
        """
        if not isinstance(estimator, DPTopics):
            raise TypeError("estimator must be a fitted DPTopics.")
        check_is_fitted(estimator)
        topics = sorted(estimator.topics_, key=lambda topic: -topic.size)
        shown = max(1, sum(topic.status != "noise" for topic in topics))
        if n_topics is not None:
            shown = check_integer(n_topics, "n_topics", low=1)
        else:  # those of which something is known
            topics.sort(key=lambda topic: topic.status == "noise")
        report = estimator.privacy_report_
        unit = "text" if report.unit == "row" else report.unit
        display = cls(
            topics[:shown],
            len(topics[shown:]),
            f"Topics at ε = {report.epsilon:.3g}",
            f"{unit}s",
            f"The bars count {unit}s; the number beside a keyword, those that use it in the topic "
            f"(± {1.96 * estimator.word_count_std_error_:,.0f}). "
            f"({report.epsilon:.3g}, {report.delta:.2g})-differentially private for adding or "
            f"removing one {unit}.",
        )
        return display if ax is None and not has_matplotlib() else display.plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the sizes as bars, with their errors, and the keywords beside them.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        self : TopicDisplay
            With the artists as attributes.
        """
        ax = axes_for(ax, (8.0, 1.2 + 0.3 * len(self.topics)))
        self.ax_, self.figure_ = ax, ax.figure
        sizes = np.array([max(topic.size, 0.0) for topic in self.topics])
        errors = np.array([1.96 * topic.size_std_error for topic in self.topics])
        places = np.arange(len(sizes))[::-1]
        lost = [topic.status == "noise" for topic in self.topics]
        self.bars_: Any = ax.barh(
            places, sizes, height=0.62, color=[PALE if each else ACCENT for each in lost]
        )
        low = np.minimum(errors, sizes)
        self.errors_: Any = ax.errorbar(
            sizes, places, xerr=[low, errors], fmt="none", ecolor=INK, elinewidth=1.2, capsize=3
        )
        ax.set_yticks(places, [plain_text(topic.label) for topic in self.topics])
        end = float((sizes + errors).max())
        for place, size, error, topic in zip(places, sizes, errors, self.topics, strict=True):
            words = ", ".join(topic.keywords[3:_IN_PICTURE])
            words = "; ".join(filter(None, [words, _WORDS.get(topic.status)]))
            ax.text(
                size + error + 0.015 * end, place, plain_text(words), va="center", color=MUTED,
                fontsize=8.5,
            )  # fmt: skip
        ax.set(xlim=(0, 1.35 * end or 1.0), ylim=(-0.7, len(sizes) - 0.3))
        ax.set_xlabel(f"{self.unit}, with 95% confidence intervals" + self._more(" ({})"))
        ax.tick_params(axis="y", length=0)
        title(ax, self.heading)
        return self

    def _more(self, form: str) -> str:
        """What is not shown."""
        if not self.n_hidden:
            return ""
        return form.format(f"{self.n_hidden} more topic{'s' * (self.n_hidden > 1)} not shown")

    def _repr_html_(self) -> str:
        """The topics for a notebook: no script, and every word is escaped."""
        largest = max([topic.size for topic in self.topics] + [1e-300])
        lines = "".join(_line(topic, largest) for topic in self.topics)
        notes = [self._more("{}."), self.guarantee]
        return _STYLE + framed(
            f'<p><b>{escape(self.heading)}</b></p><div class="sk-dp-topics">{lines}</div>'
            + "".join(f'<p class="sk-dp-note">{escape(note)}</p>' for note in notes if note)
        )

    def to_html(self) -> str:
        """Make a page of the topics, to be written into a file and published.

        Returns
        -------
        page : str
            HTML without scripts, pictures or addresses; all texts are escaped.
        """
        return (
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self.heading)}</title>"
            "<style>body{font-family:system-ui,sans-serif;margin:2em auto;max-width:60em;"
            "padding:0 1em}</style></head>"
            f"<body>{self._repr_html_()}</body></html>"
        )


def _line(topic: Topic, largest: float) -> str:
    """Label, size and keywords of a topic, in three cells."""
    pairs = zip(topic.keywords[:_IN_PAGE], topic.counts[:_IN_PAGE], strict=True)
    words = "".join(
        f"<span>{escape(word)} <small>{noisy_number(count, topic.count_std_error)}</small></span>"
        for word, count in pairs
    )
    told, lost = _WORDS.get(topic.status, ""), "sk-dp-lost" * (topic.status == "noise")
    width = 100 * min(max(topic.size, 0.0) / largest, 1.0)
    return (
        f"<b>{escape(topic.label)}</b>"
        f'<div class="{lost}">'
        f'<i style="width:{width:.1f}%"></i>'
        f"<small>{noisy_number(topic.size, topic.size_std_error)} "
        f"± {1.96 * topic.size_std_error:,.0f}</small></div>"
        f'<div class="sk-dp-words">{words}<small>{told}</small></div>'
    )
