"""Names of releases in plain words, for pictures.

A plan names releases so that audits and tests find them; a reader of a picture wants to know what
the money is for.
"""

__all__ = ["in_plain_words"]

_WORDS = {
    "bound": "how far the rows reach",
    "sum and count": "center of all rows, and their number",
    "radius": "size of the data",
    "location": "where the rows are",
    "reach": "size of the data",
    "second moment": "directions that matter",
    "cells": "where rows are dense",
    "cell means": "means of dense places",
    "lloyd distances": "sizes of the clusters",
    "lloyd errors": "which clusters to split",
    "lloyd counts": "rows in each cluster",
    "lloyd sums": "moving the centers",
    "quality": "how good the answer is",
    "component radii": "sizes of the components",
    "component counts": "rows in each component",
    "component sums": "means of the components",
    "component moments": "shapes of the components",
}


def in_plain_words(name: str) -> str:
    """What a release is for; its own name where there are no better words.

    Parameters
    ----------
    name : str
        Of a plan entry, perhaps with the stage that it belongs to in front.

    Returns
    -------
    words : str
        Different for different names of one stage and plan.

    Examples
    --------
    >>> in_plain_words("lloyd sums"), in_plain_words("partition/cells"), in_plain_words("diameter")
    ('moving the centers', 'partition: where rows are dense', 'diameter')
    """
    stage, slash, last = name.rpartition("/")
    return (f"{stage}: " if slash else "") + _WORDS.get(last, last)
