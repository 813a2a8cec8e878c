"""Releases and guarantees in plain words; the numbers in them are bounds of exact laws."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from sklearn_dp import DPPCA, DPGaussianMixture, DPKMeans
from sklearn_dp._costs.numbers import RELATIONS
from sklearn_dp._costs.pages import best_guess, in_per_cent, in_plain_words, secret_in_words


@pytest.mark.parametrize("estimator", [DPKMeans(3), DPGaussianMixture(3), DPPCA(2)])
def test_two_releases_of_a_plan_do_not_share_their_words(estimator):
    names = [entry.name for entry in estimator.privacy_plan(9).entries]
    assert len({in_plain_words(name) for name in names}) == len(set(names))


# -- what can be told ------------------------------------------------------------------------------


def right(p, q):
    """How often the best guess between two laws is right, from even chances."""
    return np.maximum(p, q).sum() / 2


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.1])
def test_the_worst_law_of_approximate_privacy_reaches_the_bound(epsilon, delta):
    """Nothing with probability 1 - delta but a randomized answer; all otherwise."""
    answer = (1 - delta) / (1 + math.exp(epsilon))
    p = np.array([delta, answer * math.exp(epsilon), answer, 0.0])
    assert right(p, p[::-1]) == pytest.approx(best_guess(epsilon, delta), rel=1e-12)


@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 8.0])
@pytest.mark.parametrize("failure", [0.0, 0.01])
def test_gaussian_noise_reaches_the_bound_of_rho_but_for_failures(rho, failure):
    edges = np.linspace(-12, 24, 200_001)
    p, q = (np.diff(norm.cdf(edges, loc=at)) for at in (0.0, math.sqrt(2 * rho)))
    p, q = np.append((1 - failure) * p, [failure, 0]), np.append((1 - failure) * q, [0, failure])
    bound = best_guess(math.inf, failure, rho, gaussian=True)
    assert right(p, q) <= bound + 1e-9
    assert bound <= right(p, q) + failure / 2 + 1e-9
    # What holds for any law of that rho is no less.
    assert bound <= best_guess(math.inf, failure, rho) <= 1


def test_each_relation_and_unit_has_its_own_words():
    words = {secret_in_words(relation, unit) for relation in RELATIONS for unit in ("row", "group")}
    assert len(words) == 6  # clients are clients, whatever the unit is called


# -- what pages say --------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *ROOT.glob("doc/*.md"), *ROOT.glob("examples/**/*.py"),
                 *ROOT.glob("sklearn_dp/**/*.py"))
    if path.name not in ("CHANGELOG.md", "CONTRIBUTING.md")
)  # fmt: skip
EPSILONS = (0.1, 1.0, 2.0, 5.0)


def figures(epsilon):
    """What can be guessed at most, by epsilon and delta alone and from a fit of DPKMeans."""
    report = DPKMeans(4, epsilon=epsilon).privacy_plan(5).report()
    by_law = re.search(r"at most ([\d.]+)%", report.told)
    return f"{in_per_cent(best_guess(epsilon, 1e-6)):.1f}", by_law[1]


def quoted(text):
    """Shares of right guesses in the sentences, and lines of tables, that speak of a guess."""
    for piece in re.split(r"(?<=[.:])\s+(?=[A-Z*])|\n\s*\n|\n\|", text):
        if re.search(r"\bguess(ed)?\b", piece):
            yield from re.findall(r"(?<![\d.])(\d\d\.\d)%", piece)


def test_every_page_quotes_the_one_function():
    known = {figure for epsilon in EPSILONS for figure in figures(epsilon)}
    found = {path.name: set(quoted(path.read_text(encoding="utf-8"))) for path in PAGES}
    assert {name: figures - known for name, figures in found.items() if figures - known} == {}
    assert "54.8" in found["README.md"] & found["get_started.md"]
