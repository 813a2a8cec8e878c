"""The results of a profile, from released values: figures, a status, a picture and a page."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import betaincinv
from sklearn.cluster import KMeans
from sklearn.utils.validation import check_is_fitted

from .._aggregate.shared.advice import listed, plain
from .._costs.numbers import extra
from .._costs.pages import bars_table, document
from .._status import Message, Severity, Status, extent, names_at
from ..inspection._curve import INK, axes_for, plain_text, title

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_NARROW = 0.02  # of its range: a column whose standard deviation is smaller is not stretched more
_MANY = 0.05  # part of the rows outside of a range
_RULES = 0.75  # part of the differences between segments that are in one column
_NOISY = 0.5  # standard deviations of a column that a standard error is
_MOSTLY = 0.25  # part of the figures that may be too noisy
_SURE = 2.0  # standard errors
_NO_MORE = 0.02  # of the spread: what segments of independent columns may explain beyond
_MADE_UP = 2000  # rows


def _with_blocks(columns: Sequence[Any]) -> Iterator[tuple[Any, slice]]:
    """Each column with its coordinates in an encoded row."""
    ends = np.cumsum([0, *(len(column.names) for column in columns)])
    return zip(columns, map(slice, ends[:-1], ends[1:]), strict=True)


@dataclass(frozen=True)
class Balance:
    """Multipliers and centers of encoded columns without weights; all are released or public.

    Known numbers have about unit variance, and all coordinates of a category together. An unknown
    number is at the mean of the known ones, one standard deviation apart in a direction of its own.
    """

    columns: tuple[Any, ...]
    weights: np.ndarray  # of each column, asked for and released
    means: np.ndarray  # encoded means of known numbers; 0 for categories
    asked: np.ndarray  # of each column

    @classmethod
    def of(cls, columns: list[Any], scales: Any, asked: dict[Any, float]) -> Self:
        """From the means and variances that a `DPStandardScaler` has released."""
        mean, variance = (np.nan_to_num(each) for each in (scales.mean_, scales.var_))
        spreads, means = [], []
        for column, block in _with_blocks(columns):
            middle, square = 0.0, np.maximum(variance[block], 0.0).sum()
            if hasattr(column, "beyond"):
                known = 1 - float(np.clip(column.unknown(mean[None, block])[0], 0.0, 0.9))
                middle = float(np.clip(mean[block][1] / known, -0.5, 0.5))
                value = float(variance[block][1]) + float(mean[block][1]) ** 2
                square = value / known - middle**2
            # No column is spread wider than its range allows.
            spreads.append(np.clip(np.sqrt(max(square, 0.0)), _NARROW, np.sqrt(column.square)))
            means.append(middle)
        wanted = np.array([asked.get(column.name, 1.0) for column in columns])
        return cls(tuple(columns), wanted / np.array(spreads), np.array(means), wanted)

    def rows(self, rows: np.ndarray, add: Any = np.add) -> np.ndarray:
        """Encoded rows, balanced, each of them by itself; or means of rows."""
        parts = []
        for column, weight, mean, asked, block in self._each:
            part = rows[:, block]
            if hasattr(column, "beyond"):
                unknown = column.unknown(part)
                part = np.stack([unknown * asked / weight, add(part[:, 1], unknown * mean)], axis=1)
            parts.append(part * weight)
        return np.hstack(parts)

    def errors(self, errors: np.ndarray) -> np.ndarray:
        """Standard errors of means of balanced rows, from those of encoded rows."""
        return self.rows(errors, np.hypot)

    def variances(self, scales: Any) -> np.ndarray:
        """Total variances of the balanced coordinates of each column."""
        mean, variance = (np.nan_to_num(each) for each in (scales.mean_, scales.var_))
        sums = []
        for column, weight, middle, asked, block in self._each:
            square = float(np.maximum(variance[block], 0.0).sum())
            if hasattr(column, "beyond"):
                unknown = float(np.clip(column.unknown(mean[None, block])[0], 0.0, 0.9))
                square = float(variance[block][1] + mean[block][1] ** 2) - (1 - unknown) * middle**2
                square = max(square, 0.0) + unknown * (1 - unknown) * (asked / weight) ** 2
            sums.append(square * weight**2)
        return np.array(sums)

    @property
    def radius(self) -> float:
        """The radius of a ball around the origin that has all balanced rows."""
        lengths = [
            np.hypot(max(column.square**0.5, abs(mean)) * weight, asked * hasattr(column, "beyond"))
            for column, weight, mean, asked, _ in self._each
        ]
        return float(np.linalg.norm(lengths)) * (1 + 1e-9)

    @property
    def blocks(self) -> list[slice]:
        """The coordinates of each column."""
        return [block for _, block in _with_blocks(self.columns)]

    @property
    def _each(self) -> Iterator[tuple[Any, float, float, float, slice]]:
        return zip(self.columns, self.weights, self.means, self.asked, self.blocks, strict=True)


@dataclass(frozen=True)
class Findings:
    """The releases of the fits of a profile. `means` are those of encoded rows."""

    balance: Balance
    scales: Any  # the fitted `DPStandardScaler`
    sizes: np.ndarray
    size_errors: np.ndarray
    means: np.ndarray  # (n_segments, n_columns_out)
    errors: np.ndarray

    @property
    def columns(self) -> tuple[Any, ...]:
        return self.balance.columns

    def between(self) -> tuple[np.ndarray, np.ndarray]:
        """For each column, the squared differences between segments, balanced, and their standard
        errors, less half of these, for the worst case."""
        sizes = np.maximum(self.sizes, 0.0)
        shares = sizes[:, None] / sizes.sum() if sizes.sum() > 0 else np.full((len(sizes), 1), 0.0)
        means, errors = self.balance.rows(self.means), self.balance.errors(self.errors)
        apart, half = means - shares.T @ means, np.square(errors) / 2
        sums = self._sums(shares * (np.square(apart) - half))
        noise = np.sqrt(self._sums(np.square(2 * shares * apart * errors)))
        return np.clip(sums, 0.0, self.total()[0]), noise + self._sums(shares * half)

    def _sums(self, values: np.ndarray) -> np.ndarray:
        """Sums over segments and the coordinates of each column."""
        return np.array([values[:, block].sum() for block in self.balance.blocks])

    def total(self) -> tuple[np.ndarray, np.ndarray]:
        """For each column, its variance, balanced, and the relative error of that."""
        variances = np.maximum(np.nan_to_num(self.scales.var_), 0.0)
        errors = np.nan_to_num(self.scales.var_std_error_, posinf=1e9)
        sums = self._sums(variances[None])
        noise = np.array([np.linalg.norm(errors[block]) for block in self.balance.blocks])
        relative = np.minimum(noise / np.maximum(sums, 1e-12), 1.0)
        return self.balance.variances(self.scales), relative


def explained(findings: Findings, rng: np.random.Generator) -> tuple[float, float, float, float]:
    """The share of the spread that the segments explain, and that of made-up rows; with errors."""
    between, noise = findings.between()
    total, relative = findings.total()
    whole = max(float(total.sum()), 1e-12)
    error = float(np.linalg.norm(np.hypot(noise, between * relative))) / whole
    seed = int(rng.integers(2**31))
    # Variances have errors, and columns that are wider or narrower attract other segments.
    shares = [_of_made_up(findings, 1 + times * relative, rng, seed) for times in (-1, 0, 1)]
    middle, apart = float(np.mean(shares)), float(np.std(shares))
    return float(between.sum()) / whole, min(error, 1.0), middle, apart


def _of_made_up(
    findings: Findings, times: np.ndarray, rng: np.random.Generator, seed: int
) -> float:
    """The share that segments of made-up rows explain; variances are multiplied by `times`."""
    parts = zip(findings.columns, findings.balance.blocks, times, strict=True)
    mean, variance = findings.scales.mean_, findings.scales.var_
    encoded = [_made_up(each, mean[at], variance[at] * by, rng) for each, at, by in parts]
    rows = findings.balance.rows(np.hstack(encoded))
    spread = float(np.square(rows - rows.mean(axis=0)).sum())
    model = KMeans(len(findings.sizes), n_init=3, random_state=seed).fit(rows)
    return 1 - float(model.inertia_) / spread if spread > 0 else 0.0


def _made_up(
    column: Any, mean: np.ndarray, variance: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Encoded values of a column with the released shares, or of a beta law."""
    draws = rng.random((2, _MADE_UP))
    if not hasattr(column, "beyond"):
        shares = column.decode(mean[None])[0]
        codes = np.searchsorted(np.cumsum(shares)[:-1], draws[0], side="right")
        values = [*column.values, object()]  # the last one is not listed
        return column.encode([values[code] for code in codes])
    unknown = float(np.clip(column.unknown(mean[None])[0], 0.0, 0.99))
    place = float(np.clip(mean[1] / (1 - unknown) + 0.5, 1e-3, 1 - 1e-3))
    square = (np.nan_to_num(max(variance[1], 0.0)) + mean[1] ** 2) / (1 - unknown)
    spread = float(np.clip(square - (place - 0.5) ** 2, 1e-5, 0.98 * place * (1 - place)))
    count = place * (1 - place) / spread - 1
    values = betaincinv(place * count, (1 - place) * count, draws[0])
    values = column.low + (column.high - column.low) * np.nan_to_num(values)
    return column.encode(np.where(draws[1] < unknown, np.nan, values))


def status_of(findings: Findings, of_schema: Status, shares: tuple[float, ...]) -> Status:
    """Return the status of a profile: of the schema, the ranges, the segments and the noise."""
    names = [str(column.name) for column in findings.columns]
    messages = []
    numbers = [column for column in findings.columns if hasattr(column, "beyond")]
    beyond = findings.scales.mean_[findings.means.shape[1] :]
    errors = findings.scales.mean_std_error_[findings.means.shape[1] :]
    for column, share, error in zip(numbers, beyond, errors, strict=True):
        if share - _SURE * error > _MANY:
            text = (
                f"{100 * min(share, 1.0):.0f}% of the values of {column.name} are outside of its "
                "range and were moved to its ends"
            )
            about = (str(column.name),), "use a wider range"
            messages.append(Message("rows_beyond_bounds", text, *about, severity="part"))
    if len(findings.sizes) > 1:
        messages += _of_segments(findings, names, shares)
    errors = findings.balance.errors(findings.errors)
    largest = [errors[:, block].max(axis=1) for block in findings.balance.blocks]
    noisy = ~(np.stack(largest, axis=1) < _NOISY)  # the means of each segment and column
    if noisy.any():
        words = [
            f"{name} in segment{'s' * int(column.sum() > 1)} "
            + ", ".join(str(i + 1) for i in np.flatnonzero(column))
            for name, column in zip(names, noisy.T, strict=True)
        ]
        text = f"too noisy to use: {listed(words, np.flatnonzero(noisy.any(axis=0)))}"
        columns = names_at(names, noisy.any(axis=0))
        severity: Severity = "caution"
        if noisy.mean() > _MOSTLY:
            severity = extent(int(noisy.sum()), noisy.size)
        action = "use fewer segments or a larger epsilon"
        messages.append(Message("noisy_columns", text, columns, action, severity))
    return of_schema.add(*messages)


def _of_segments(findings: Findings, names: list[str], shares: tuple[float, ...]) -> list[Message]:
    """Return messages about the segments."""
    (share, share_sd, without, without_sd), messages = shares, []
    more, error = share - without, float(np.hypot(share_sd, without_sd))
    compared = (
        f"the segments explain {100 * share:.0f}% of the spread, and segments of a table whose "
        f"columns are independent would explain {100 * without:.0f}% (standard error of the "
        f"difference: {plain(100 * error)}%)"
    )
    if more <= min(error, _NO_MORE):
        text = f"no evidence of clusters: {compared}"
        messages.append(Message("no_clusters", text, severity="part"))
    elif more <= _SURE * error:
        messages.append(
            Message("unclear_clusters", f"noise hides whether there are clusters: {compared}")
        )
    between = findings.between()[0]
    most = int(between.argmax())
    if len(names) > 2 and between[most] > _RULES * between.sum():
        text = (
            f"one column determines the segments: {100 * between[most] / between.sum():.0f}% of "
            f"the differences between them are in {names[most]}"
        )
        action = "leave it out, or give it a smaller weight"
        messages.append(Message("one_column_rules", text, (names[most],), action, "part"))
    empty = np.flatnonzero(findings.sizes < _SURE * findings.size_errors)
    if len(empty):
        text = f"segments that may be empty: {', '.join(str(i + 1) for i in empty)}"
        severity = extent(len(empty), len(findings.sizes))
        messages.append(Message("empty_clusters", text, (), "use fewer segments", severity))
    return messages


# -- what is shown ---------------------------------------------------------------------------------


class ProfileDisplays:
    """Mixin of `DPProfile`: its table, its picture and its page."""

    encoder_: Any
    sizes_: np.ndarray
    sizes_std_error_: np.ndarray
    means_: np.ndarray
    means_std_error_: np.ndarray
    messages_: Status
    privacy_report_: Any

    def _figures(self) -> list[tuple[str, str, np.ndarray, np.ndarray]]:
        """Column, what is told of it, values and standard errors (n_segments,)."""
        check_is_fitted(self)
        unit = f"{self.privacy_report_.unit}s"
        figures = [("size", unit, self.sizes_, self.sizes_std_error_)]
        for column, block in _with_blocks(self.encoder_._columns()):
            values = column.decode(self.means_[:, block])
            errors = column.errors(self.means_[:, block], self.means_std_error_[:, block])
            kinds = ["missing", "mean"]
            if not hasattr(column, "beyond"):
                kinds = [*map(str, column.values), column.decoded[-1][len(f"{column.name}_") :]]
            rows = [
                (str(column.name), kind, values[:, i], errors[:, i]) for i, kind in enumerate(kinds)
            ]
            figures += rows[::-1] if hasattr(column, "beyond") else rows
        return figures

    def _shown(self) -> list[tuple[str, str, np.ndarray, np.ndarray]]:
        """Figures without shares of missing or unlisted values that may be zero everywhere."""
        return [
            (name, kind, values, errors)
            for name, kind, values, errors in self._figures()
            if kind not in ("missing", "unlisted", "unlisted_")
            or (values > np.maximum(0.01, _SURE * errors)).any()
        ]

    @property
    def table(self) -> "pd.DataFrame":
        """The profile: figures by column and kind; value and standard error by segment."""
        with extra("pandas"):
            import pandas as pd
        figures = self._figures()
        numbers = np.array([np.stack(pair[2:], axis=1).ravel() for pair in figures])
        segments = range(1, len(self.sizes_) + 1)
        return pd.DataFrame(
            numbers,
            index=pd.MultiIndex.from_tuples([each[:2] for each in figures]),
            columns=pd.MultiIndex.from_product([segments, ["value", "std_error"]]),
        )

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the profile: for each figure, how far each segment is from the mean of all.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        ax : matplotlib Axes
            With the figures as text, and colors by their difference from the mean of all
            segments, relative to the largest difference of that figure.
        """
        figures = self._shown()
        ax = axes_for(ax, (1.6 + 1.1 * len(self.sizes_), 1.0 + 0.3 * len(figures)))
        sizes = np.maximum(self.sizes_, 0.0) + 1e-9
        colors = np.zeros((len(figures), len(sizes)))
        for row, (_, _, values, _) in enumerate(figures):
            apart = np.nan_to_num(values - np.average(np.nan_to_num(values), weights=sizes))
            colors[row] = apart / max(np.abs(apart).max(), 1e-300)
        colors[0] = 0.0
        ax.imshow(colors, cmap="PuOr", vmin=-2.2, vmax=2.2, aspect="auto")
        for row, (name, kind, values, errors) in enumerate(figures):
            for place, text in enumerate(_cells(name, kind, values, errors)):
                ax.text(place, row, text, ha="center", va="center", fontsize=8, color=INK)
        labels = [plain_text(f"{name}: {kind}") for name, kind, *_ in figures]
        ax.set_yticks(range(len(figures)), labels)
        ax.set_xticks(range(len(sizes)), [f"segment {i + 1}" for i in range(len(sizes))])
        ax.tick_params(length=0)
        title(ax, f"{len(sizes)} segments, with 95% margins of error")
        return ax

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the profile as a page of its own, which any browser shows and prints.

        Parameters
        ----------
        path : str or path
            Of the file, such as ``"report.html"``. A file of that name is replaced.
        """
        Path(path).write_text(self._page(), encoding="utf-8")

    def _text(self) -> str:
        """The figures that the page has, as lines of text."""
        figures = self._shown()
        heads = ["", *(f"segment {i + 1}" for i in range(len(self.sizes_)))]
        lines = [heads, *([f"{each[0]}: {each[1]}", *_cells(*each)] for each in figures)]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        padded = (
            [text.ljust(width) for text, width in zip(line, widths, strict=True)] for line in lines
        )
        return "\n".join("  ".join(cells).rstrip() for cells in padded)

    def _page(self) -> str:
        """The page. Everything in it is released or public, and escaped."""
        figures = self._shown()
        heads = ["", *(f"Segment {i + 1}" for i in range(len(self.sizes_)))]
        total = max(float(np.maximum(self.sizes_, 0.0).sum()), 1.0)
        lines, before = [], ""
        for name, kind, values, errors in figures:
            shares = values / total if name == "size" else values
            bars = None if kind == "mean" else np.clip(np.nan_to_num(shares), 0.0, 1.0)
            label = kind if name == before else f"{name}: {kind}"
            lines.append((label, name != before, _cells(name, kind, values, errors), bars))
            before = name
        report = self.privacy_report_
        alarm = "" if self.messages_.trustworthy else ' class="sk-dp-bad"'
        listing = "".join(f"<p>{escape(str(each))}</p>" for each in self.messages_)
        notes = "".join(f'<p class="sk-dp-note">{escape(text)}</p>' for text in report.warnings)
        return document(
            f"{len(self.sizes_)} segments",
            f"<p{alarm}>Status: {self.messages_.word}</p>{listing}{bars_table(heads, lines)}"
            "<p>Each figure has a 95% margin of error, which covers privacy noise, sampling and "
            "clipping.</p>"
            f"<h2>Privacy</h2><p>{escape(report.told)}</p><p>{escape(report.spent)} "
            f"{escape(report.headline)}.</p>{notes}",
        )


def _cells(name: str, kind: str, values: np.ndarray, errors: np.ndarray) -> list[str]:
    """Figures with their 95% margins, without digits that are noise; shares in percent."""
    percent = name != "size" and kind != "mean"
    scale = 100.0 if percent else 1.0
    return [
        _cell(scale * value, scale * 1.96 * error, "%" * percent)
        for value, error in zip(values, errors, strict=True)
    ]


def _cell(value: float, margin: float, unit: str) -> str:
    """A figure and its margin.

    >>> _cell(45.234, 0.61, ""), _cell(1234.5, 88.0, ""), _cell(12.0, 3.0, "%")
    ('45.2 ± 0.7', '1,230 ± 90', '12 ± 3%')
    """
    if not np.isfinite(value + margin):
        return "not known"
    place = int(np.floor(np.log10(max(margin, 1e-9))))
    step, digits = 10.0**place, max(-place, 0)
    margin = np.ceil(round(margin / step, 6)) * step  # up: no margin is stated too small
    value = round(value / step) * step
    return f"{value + 0.0:,.{digits}f} ± {margin:,.{digits}f}{unit}"
