"""Guarantees and releases in plain words, for displays and pictures.

A plan names releases so that audits and tests find them; a reader of a picture wants to know what
the money is for. And epsilon means nothing to most people: :func:`best_guess` says what it allows.
"""

from __future__ import annotations

import math

_WORDS = {
    "bound": "how far the rows reach",
    "sum and count": "center of all rows, and their number",
    "radius": "size of the data",
    "location": "where the rows are",
    "reach": "size of the data",
    "second moment": "directions that matter",
    "cells": "where rows are dense",
    "ranks": "how the values of the column are spread",
    "cell means": "means of dense places",
    "lloyd distances": "spread of each cluster",
    "lloyd errors": "which clusters to split",
    "lloyd counts": "rows in each cluster",
    "lloyd sums": "moving the centers",
    "quality": "how good the answer is",
    "component radii": "sizes of the components",
    "component counts": "rows in each component",
    "component sums": "means of the components",
    "component moments": "shapes of the components",
}


# What a guarantee protects, by what neighbors do; {} is the unit.
_SECRETS = {
    "add or remove": "whether any one {} was in the data",
    "replace": "whether any one {} was replaced by a different one",
    "add or remove the rows of": "whether the rows of any one {} were in the data",
    "replace the rows of": "whether the rows of any one {} were replaced by different ones",
}


def in_plain_words(name: str) -> str:
    """Return the purpose of a release in words; its own name where there are no better words.

    `name` is that of a plan entry, perhaps with its stage in front. Different names of one stage
    and plan have different words.

    >>> in_plain_words("lloyd sums"), in_plain_words("partition/cells"), in_plain_words("diameter")
    ('moving the centers', 'partition: where rows are dense', 'diameter')
    """
    stage, slash, last = name.rpartition("/")
    return (f"{stage}: " if slash else "") + _WORDS.get(last, last)


def secret_in_words(relation: str, unit: str) -> str:
    """Return what a guarantee protects, as words that follow "guess".

    Units that take part "whatever rows they hold" are clients.

    >>> secret_in_words("add or remove", "row")
    'whether any one row was in the data'
    >>> secret_in_words("replace the rows of", "group")
    'whether the rows of any one client were replaced by different ones'
    """
    if relation.endswith("the rows of"):
        unit = "client"
    return _SECRETS[relation].format("group of rows" if unit == "group" else unit)


def best_guess(
    epsilon: float, delta: float, rho: float = math.inf, gaussian: bool = False
) -> float:
    """How often the best guess between two neighbors is right, if both were equally likely.

    What is released is (epsilon, delta)-DP; it is also rho-zCDP, but for failures of probability at
    most `delta`, and if `gaussian`, but for these it is even sqrt(2 rho)-GDP. An upper bound,
    between 1/2 (knowing nothing) and 1.
    """
    # A guess errs with probability a on one neighbor and b on the other, and is right in
    # 1 - (a + b) / 2 of all cases. (epsilon, delta)-DP says that 1 - a <= e^epsilon b + delta and
    # 1 - b <= e^epsilon a + delta; their sum is (a + b) (1 + e^epsilon) >= 2 (1 - delta).
    by_epsilon = 1 - (1 - delta) / (1 + math.exp(min(epsilon, 700.0)))
    # a + b is also 1 less the total variation distance of the two laws. Without failures, it is
    # that of two normal laws sqrt(2 rho) standard deviations apart; of zCDP, whose divergence at
    # the order 1 is at most rho, the bounds are those of Pinsker, and of Bretagnolle and Huber.
    # Failures of probability f replace the part f of both laws, so that they add at most f.
    if gaussian:
        distance = math.erf(math.sqrt(rho) / 2)
    else:
        distance = min(math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho)))
    return min(by_epsilon, (1 + min(1.0, distance + delta)) / 2)


def in_per_cent(guess: float) -> float:
    """A bound of right guesses as it is printed: in percent, rounded up to a tenth."""
    # An upper bound stays one when it is printed; 1e-9 stands for the rounding of the formulas.
    return math.ceil(1000 * (guess + 1e-9)) / 10


def what_can_be_told(secret: str, guess: float, alone: float, can: str = "can") -> str:
    """How often a guess is right, and what epsilon and delta alone say of that.

    One or two sentences. The beginning, which says of what, is missing. `guess` and `alone` are
    from :func:`best_guess`, with all that is known of the law of what is released, and with epsilon
    and delta only. `can` is "can", or "could" of a fit that has not been.
    """
    shown, whatever = in_per_cent(guess), in_per_cent(alone)
    if shown >= 100:
        return (
            f"someone who knows all other rows may be able to guess {secret} and be right nearly "
            "every time: the guarantee is too weak to prevent it."
        )
    words = (
        f"someone who knows all other rows {can} guess {secret}, but would be right at most "
        f"{shown:.1f}% of the time, if both cases were equally likely beforehand (a coin toss is "
        "right 50% of the time)."
    )
    if shown == whatever:
        return f"{words} This limit follows from epsilon and delta alone."
    if whatever >= 100:
        return f"{words} This limit follows from the exact distribution of the noise."
    return (
        f"{words} This limit follows from the exact distribution of the noise; epsilon and delta "
        f"alone would allow {whatever:.1f}%."
    )
