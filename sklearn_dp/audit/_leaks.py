"""Search everything that an estimator shows for values of its training data."""

import pickle
import warnings

import numpy as np

from ._observe import accepts_groups, prepared, run_fit

__all__ = ["needles", "scan_for_leaks", "search"]

_DIGITS = (6, 7, 8, 10, 12, 15, 17)
_FEWEST_DIGITS = 6  # of a value, to be told from chance: 1.5 occurs in any text
_MOST_VALUES = 300


def scan_for_leaks(estimator, X, *, groups=None):
    """Fit a clone and look for values of `X` in all that it shows.

    Searched are the pickle, the texts (repr, report, HTML displays), the warnings, and the errors
    of fits and predictions for which some of the data was spoilt: NaN, infinite or complex values,
    strings, wrong shapes.

    Parameters
    ----------
    estimator : estimator of this package
    X : ndarray of shape (n_samples, n_features)
        Values with fewer than six significant digits cannot be told from chance and are left out;
        random numbers are best.
    groups : ndarray of shape (n_samples,), optional

    Returns
    -------
    leaks : list of str
        Where which row and column was found, and in which form; empty if all is well.

    Notes
    -----
    Forms: eight bytes of a float64, and the bytes of two neighbouring float32, in both byte
    orders; decimals with 6 to 17 digits. What is derived from the data in another way (a sum, a
    count) is found by :func:`replay_audit`, not here.
    """
    X = np.asarray(X, dtype=np.float64)
    sought = needles(X)
    return [f"{where}: {leak}" for where, text in _shown(estimator, X, groups)
            for leak in search(sought, text)]


def search(sought, text):
    """Which of the needles a text or some bytes hold, in words."""
    data = text if isinstance(text, bytes) else text.encode()
    return sorted({what for needle, what in sought.items() if needle in data})


def needles(X):
    """Byte strings that would betray a value of `X`, each with what it betrays."""
    found = {}
    places = np.argwhere(np.isfinite(X))
    for i, j in places[np.linspace(0, len(places) - 1, min(len(places), _MOST_VALUES), dtype=int)]:
        for needle in _forms(float(X[i, j])):
            found[needle] = f"row {i}, column {j}"
    # Four bytes alone occur by chance: two neighbours of a row or of a column.
    for matrix, name in ((X, "row {0}"), (X.T, "column {0}")):
        for i, j in np.ndindex(min(len(matrix), _MOST_VALUES), max(matrix.shape[1] - 1, 0)):
            for order in "<>":
                pair = matrix[i, j:j + 2].astype(order + "f4")
                if np.count_nonzero(pair) == 2 and len(set(pair)) == 2:
                    found[pair.tobytes()] = f"float32 bytes of {name.format(i)}"
    return found


def _forms(value):
    """Eight bytes and decimals of a number, unless it is too simple to be told from chance."""
    digits = f"{abs(value):.16e}".split("e")[0].replace(".", "").strip("0")
    if len(digits) < _FEWEST_DIGITS:
        return
    yield from (np.array(value, dtype=order + "f8").tobytes() for order in "<>")
    texts = {repr(abs(value)), str(abs(np.float32(value)))}
    texts |= {f"{abs(value):.{p}{kind}}" for p in _DIGITS for kind in "gfe"}
    for text in texts:
        if len(text.split("e")[0].replace(".", "").strip("0")) >= _FEWEST_DIGITS:
            yield text.encode()


# -- everything that is shown ----------------------------------------------------------------------


def _shown(estimator, X, groups):
    """Pairs (where, text or bytes)."""
    outcome = run_fit(prepared(estimator), X, groups)
    yield from outcome.face(html=True).items()
    if outcome.error is not None:
        return
    yield "pickle (protocol 0)", pickle.dumps(outcome.estimator, protocol=0)
    yield "plan", repr(outcome.estimator.privacy_plan(X.shape[1]))
    yield "releases", repr(outcome.estimator.privacy_report_.releases)
    for name, spoilt in spoilt_data(X):
        yield f"fit of {name}", _text_of(prepared(estimator).fit, spoilt)
        for method in ("predict", "transform", "score"):
            if hasattr(outcome.estimator, method):
                yield (f"{method} of {name}", _text_of(getattr(outcome.estimator, method), spoilt))
    if accepts_groups(estimator):
        for name, wrong in (("long", X.ravel()), ("matrix", X), ("short", X[1:, 0])):
            yield f"groups ({name})", _text_of(prepared(estimator).fit, X, groups=wrong)


def spoilt_data(X):
    """Data that has to be refused, with the values of `X` in it."""
    nan, infinite = X.copy(), X.copy()
    nan[-1, 0], infinite[-1, 0] = np.nan, np.inf
    mixed = X.astype(object)
    mixed[0, 0] = f"{X[0, 0]!r}?"
    with_dict = X.astype(object)
    with_dict[0, 0] = {X[0, 0]: 1}
    return [("NaN", nan), ("infinity", infinite), ("complex numbers", X * 1j),
            ("strings", np.char.add(X.astype(str), "?")), ("mixed objects", mixed),
            ("dicts", with_dict), ("one dimension", X[0]), ("three dimensions", X[None]),
            ("a number", X[0, 0]), ("no features", X[:, :0]), ("ragged rows", [*X.tolist(), [1.0]])]


def _text_of(method, *args, **options):
    """Warnings and error of a call that should fail, with what the error carries along."""
    texts = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            method(*args, **options)
        except Exception as error:
            while error is not None:
                texts.append(f"{error!r} {error}")
                error = error.__cause__ or error.__context__
    return " ".join([*texts, *(str(item.message) for item in caught)])
