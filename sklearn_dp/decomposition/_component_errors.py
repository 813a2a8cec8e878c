"""Released principal components and their standard errors: post-processing. The noise of the moment
is isotropic, so their laws are those of a perturbed symmetric matrix, to first order."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from .._aggregate.columns.answer import codes_of_means, status_of
from .._aggregate.columns.moments import fit_moments
from .._aggregate.moments.ellipsoid import at_bound_codes
from .._aggregate.shared.advice import at_bounds, plain, told_of_cuts
from .._aggregate.shared.bounds import CenterRadius
from .._aggregate.shared.column_codes import told_of_rule
from .._base import BaseDPEstimator
from .._costs.numbers import is_integer
from .._parameters import column_ends
from .._privacy._session import PrivacySession
from .._queries._query import TableRows
from .._status import Message, Severity, Status, extent, in_short

_HIDDEN = 0.5  # part of a spread that a standard error is, above which little can be seen
_DOUBTED, _LARGE = 0.2, 0.5  # parts of a variance that clips may take: all is well, or not
_CLEAR = 3.0  # standard deviations of its noise that a variance is at least
_SMALLER = 0.25  # part of another variance
_ANY = 0.5  # mean square of the part of a vector along each of two axes, if any direction is alike


class BaseComponentErrors(BaseDPEstimator):
    """The components of a released moment, and how far they may be off."""

    n_components: Any
    noise_level_: float
    explained_variance_ratio_: np.ndarray
    noise_variance_: float
    explained_variance_: np.ndarray
    components_: np.ndarray
    n_components_: int
    n_features_in_: int
    mean_: np.ndarray
    mean_std_error_: np.ndarray
    messages_: Status
    _total: tuple[float, Any, float, float, float]
    _rule: list[Message]  # which column has nearly all of the spread
    _status: Status  # for any number of components

    def _set_components(self, eigen, unit):
        """Directions and variances, of the released sum of squares (in steps), and its scale."""
        values, vectors = eigen
        variance = np.maximum(values[::-1], 0.0) * unit  # noise makes some eigenvalues negative
        k = self.n_components_ = _n_components(self.n_components, variance, self.noise_level_)
        components = vectors[:, ::-1][:, :k].T
        largest = components[np.arange(k), np.abs(components).argmax(axis=1)]
        self.components_ = components * np.where(largest < 0, -1.0, 1.0)[:, None]
        self.explained_variance_ = variance[:k]
        self.explained_variance_ratio_ = variance[:k] / max(variance.sum(), 1e-300)
        self.noise_variance_ = float(variance[k:].mean()) if k < len(variance) else 0.0

    def _set_errors(self, total, sd, size, size_sd, taken):
        """Standard errors, from released numbers.

        `total` variance is at least `sd`, the standard deviation of the noise of a variance along
        any direction: the noise is isotropic. That of several days is H G H, of such a G of
        standard deviation one, and `sd` the square of H (d, d). `size` has noise of `size_sd`. A
        variance v of normal data that are drawn again has the standard deviation v sqrt(2 / size).
        Clips take about `taken` of the total at the most: between that of one component and a share
        of each is the geometric mean."""
        self._total = total, sd, size, size_sd, taken
        variance, k, d = self.explained_variance_, self.n_components_, self.n_features_in_
        # Not by squares: variances of rows as large as bounds allow have none.
        relative = math.hypot(math.sqrt(2 / size), min(1.0, size_sd / size))
        components = self.components_
        along = sd if np.ndim(sd) == 0 else np.einsum("ij,jk,ik->i", components, sd, components)
        noise = np.hypot(along, self._taken())
        self.explained_variance_std_error_ = np.hypot(noise, relative * variance)
        share = min(1.0, float(variance.sum()) / total)
        self.explained_ = share
        # Part of the noise of the total is that of the components: of the trace of H G H W, for W
        # with 1 - share along these and -share along others, it is the length of H W H.
        if np.ndim(sd) == 0:
            sd = math.sqrt(k * (1 - share) ** 2 + (d - k) * share**2) * sd
        else:
            scaled = (sd / total) @ (components.T @ components - share * np.eye(d))
            sd = math.sqrt(max(float(np.sum(scaled * scaled.T)), 0.0)) * total
        error = math.hypot(sd, max(share, 1 - share) * taken)
        self.explained_std_error_ = min(1.0, error / total)

    def _taken(self) -> np.ndarray:
        """About the most that clips take of each variance."""
        total, *_, taken = self._total
        return taken * np.sqrt(np.minimum(self.explained_variance_ / total, 1.0))

    def _told_of_tails(self, status: Status) -> Status:
        """A trustworthy status, with what clips may have taken of the largest variance."""
        first = np.maximum(self.explained_variance_[:1], 1e-300)
        share = float((self._taken()[:1] / first).max(initial=0.0))
        if not status.trustworthy or share <= _DOUBTED:
            return status
        text = (
            "long tails may lie beyond radius_: standard errors allow for a bias of "
            f"{plain(100 * share, 1)}% of a variance"
        )
        action = "use more rows or a larger epsilon"
        severity: Severity = "caution" if share < _LARGE else "part"
        return status.add(Message("long_tails", text, (), action, severity))

    def _told_of_noise(self, status: Status) -> Status:
        """A trustworthy status, with the components that noise hides if their number was given."""
        hidden = np.flatnonzero(self.explained_variance_ < self.noise_level_)
        if self.n_components is None or not len(hidden) or not status.trustworthy:
            return status
        text = f"components too noisy to use: {in_short(hidden.tolist())}"
        action = "use fewer components, more rows or a larger epsilon"
        severity = extent(len(hidden), self.n_components_)
        message = Message("noisy_components", text, (), action, severity)
        return status.add(message, *self._rule)

    def _set_direction_errors(self, eigen, unit, mean_sd):
        """Standard errors of the directions and of the mean, with noise `mean_sd` in each
        coordinate.

        To first order, a symmetric change E of a matrix with eigenvalues l turns its eigenvector i
        toward j by the angle e_ij / (l_i - l_j), for e_ij the entry of E in these directions. Noise
        of standard deviation s on the diagonal, which is isotropic, has the variance s^2 / 2 in
        each of these entries, that of several days (s_ii s_jj + s_ij^2) / 2 with s in these
        directions; drawing n normal rows has l_i l_j / n. An angle of half a right one or more is
        any angle."""
        _, sd, size, *_ = self._total
        values, vectors = eigen[0][::-1] * unit, eigen[1][:, ::-1]
        variance, k = np.maximum(values, 0.0), self.n_components_
        # Scaled, so that squares of variances as large as bounds allow do not overflow.
        scale = max(float(variance[0]), float(np.max(sd)), 1e-300)
        variance, gaps = variance / scale, (values[:k, None] - values) / scale
        noise = np.eye(len(values)) * (sd / scale) if np.ndim(sd) == 0 else sd / scale
        noise = vectors.T @ noise @ vectors if np.ndim(sd) else noise
        turned = (np.outer(np.diag(noise)[:k], np.diag(noise)) + np.square(noise[:k])) / 2
        turned += variance[:k, None] * variance / size
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            angles = np.minimum(turned / np.square(gaps), _ANY)
        np.fill_diagonal(angles, 0.0)
        # Each entry is that of a vector of length one: its error is no larger.
        errors = np.sqrt(np.minimum(np.nan_to_num(angles, nan=_ANY) @ np.square(vectors.T), 1.0))
        self.components_std_error_ = errors
        spread = np.sqrt(np.square(vectors) @ variance * scale / size)
        self.mean_std_error_ = np.hypot(mean_sd, spread)

    def _set_mean(
        self, session: PrivacySession, table: TableRows, place: CenterRadius, variances: np.ndarray
    ) -> None:
        """The mean, with noise of each column's own if paid for; its status, by `variances`."""
        names, domain = self._column_names, self._domain(table.n_features)
        if place.status and domain is None:
            self.mean_std_error_ = np.full(table.n_features, math.inf)
            self.components_std_error_ = np.ones_like(self.components_)
            self._set_errors(self._total[0], math.inf, *self._total[2:])
            self.column_status_ = np.full(table.n_features, "noise", dtype="<U8")
        elif self._unequal(table.n_features):
            ends = column_ends(self._in_order("bounds"), table.n_features)
            moments = fit_moments(session, table, *ends, spreads=False)
            # Noise may hide from means what the second moment shows.
            moments = replace(moments, least=np.maximum(moments.least, self._spreads(variances)))
            codes, known = codes_of_means(moments), moments.known | moments.single
            self.messages_ = self.messages_ or status_of(moments, codes, names, session.budget_for)
            self.mean_ = np.where(known, moments.mean, self.mean_)
            self.mean_std_error_ = np.where(known, moments.error, self.mean_std_error_)
            self.column_status_, domain = codes, None  # rows beyond the bounds have been counted
        else:
            self._set_mean_codes(domain, variances)
        self._tell(domain, variances)

    def _tell(self, domain, variances):
        """The status and codes, with what bounds, noise and clips may hide."""
        names, sd = self._column_names, self._column_noise()
        spreads = self._spreads(variances)
        mean = self.mean_, self.mean_std_error_
        codes = self.column_status_ = at_bound_codes(self.column_status_, domain, *mean, spreads)
        cut = codes, domain, self.mean_, spreads, names
        status = told_of_cuts(self.messages_, *cut, wrong=True)
        # One box for columns of different units has the noise of the widest in all of them.
        hidden = (variances < _CLEAR * sd) & (variances + _CLEAR * sd < _SMALLER * variances.max())
        hidden &= (codes == "ok") & (domain is not None and domain.low is not None)
        if status.trustworthy:
            words = (
                "the spreads of these columns are mostly noise, and their means may be noise, too"
            )
            action = "use separate bounds for columns in different units"
            status = status.add_columns("hidden_spreads", words, names, hidden, action)
            codes[hidden] = "unknown"
        self._rule = told_of_rule(spreads, names, "components")
        self._status = self._told_of_tails(status)
        self.messages_ = self._told_of_noise(self._status)

    def _spreads(self, variances):
        """Standard deviations of columns, without what the noise may have added to them."""
        return np.sqrt(np.maximum(variances - _CLEAR * self._column_noise(), 0.0))

    def _column_noise(self):
        """Standard deviation of the noise of the variances of columns."""
        return np.diag(self._total[1]) if np.ndim(self._total[1]) else self._total[1]

    def _set_mean_codes(self, domain, variances):
        """Codes of the mean of each column, by released variances, or that of all together."""
        total, sd = self._total[0], self._column_noise()
        visible = variances > _CLEAR * sd
        spread = np.sqrt(np.where(visible, variances, total / len(variances)))
        known = self.mean_std_error_ <= _HIDDEN * spread
        self.column_status_ = np.where(known, "ok", "noise").astype("<U8")
        mean = self.mean_, self.mean_std_error_
        self.messages_ = at_bounds(self.messages_, domain, *mean, self._column_names)


def _n_components(wanted, variance, noise_level):
    """How many components there are: by the released spectrum, unless a number is wanted.

    >>> _n_components("auto", np.array([9.0, 4.0, 1.0, 0.5]), 2.0)
    2
    """
    if wanted is None:
        return len(variance)
    if isinstance(wanted, str | tuple | list):
        low, high = (1, len(variance)) if isinstance(wanted, str) else wanted
        return int(np.clip(np.count_nonzero(variance > noise_level), low, high))
    if is_integer(wanted):
        return int(wanted)
    ratios = np.cumsum(variance) / max(variance.sum(), 1e-300)
    return min(int(np.searchsorted(ratios, wanted, side="right")) + 1, len(variance))
