"""Every estimator with anything: an error that a person understands, or an answer; never data."""

import contextlib
import io
import re
import warnings

import numpy as np
import pytest
from estimators import all_estimators
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from test_bad_input import BAD_DATA, BAD_GROUPS
from threadpoolctl import threadpool_limits

from sklearn_dp.exceptions import PrivacyWarning, SeededNoiseWarning, UtilityWarning

from .arguments import fresh, options
from .tables import VALUES, numbers

ESTIMATORS = dict(all_estimators())
FAST, LONG = 12, 2000
"""Fits of each estimator, in the normal suite and by `make fuzz`."""

QUOTED = re.compile(r"(?<![\w.])(?:0\.0*)?7[.,]?3[.,]?1[.,]?9|secret")
"""The first digits of all the numbers in these tables, as a message would quote them."""

RAW = re.compile(
    r"unhashable|not supported between|has no attribute|not subscriptable|truth value|ufunc|"
    r"could not be broadcast|invalid literal|must be real number|int too large|Cannot cast|"
    r"array must not contain|Maximum allowed|negative dimensions|math domain"
)
"""Words of errors that Python or NumPy raised because nobody looked at a value before."""

METHODS = ("predict", "transform", "score_samples", "private_score")
EXPECTED = (PrivacyWarning, SeededNoiseWarning, UtilityWarning)


def words_of(error):
    """All that an error tells, and the errors behind it."""
    while error is not None:
        yield f"{error!r} {error}"
        error = error.__cause__ or error.__context__


def called(function, *arguments, **named):
    """What a call returns, its error, and everything that a person could read."""
    value = error = None
    printed = io.StringIO()
    with (
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        warnings.simplefilter("always")
        try:
            value = function(*arguments, **named)
        except Exception as raised:
            error = raised
    unexpected = [each for each in caught if not issubclass(each.category, EXPECTED)]
    unexpected = [each for each in unexpected if "feature names" not in str(each.message)]
    texts = [printed.getvalue(), *(str(each.message) for each in caught), *words_of(error)]
    return value, error, texts, unexpected


def problem(outcome):
    """What is wrong with a call, in words, or None."""
    _, error, texts, unexpected = outcome
    quoting = [text for text in texts if QUOTED.search(text)]
    if quoting or texts[0]:
        return f"it shows {(quoting or texts)[0][:300]!r}"
    if unexpected:
        return f"it warns {unexpected[0].message}"
    if error is not None and (type(error) not in (TypeError, ValueError) or RAW.search(str(error))):
        return f"it raises {error!r:.300}"
    return None


tables = st.one_of(
    *3 * [st.builds(numbers, st.sampled_from(sorted(VALUES)), st.integers(0, 2**16),
                    st.tuples(st.sampled_from([13, 29, 1]), st.sampled_from([3, 2, 1, 20])))],
    st.sampled_from(sorted(BAD_DATA)).map(lambda name: fresh(BAD_DATA[name][0])),
)  # fmt: skip
ids = st.one_of(*3 * [st.none()], st.just(np.arange(12) // 2), st.sampled_from([*BAD_GROUPS]))


def fits(cls, count, **phases):
    """Fits with any options to any table, and whatever the fitted estimator has to say of others.
    Returns how many of them had an answer."""
    answered = []

    @settings(max_examples=count, suppress_health_check=list(HealthCheck), deadline=None,
              database=None, **phases)  # fmt: skip
    @given(options(cls), tables, tables, ids)
    def one(chosen, X, other, groups):
        seed = chosen.get("random_state")
        model = cls(**{**chosen, "random_state": 0 if seed is None else seed})
        groups = BAD_GROUPS[groups] if isinstance(groups, str) else groups
        outcome = called(model.fit, X, groups=groups)
        assert problem(outcome) is None, (chosen, problem(outcome))
        if outcome[1] is not None:
            return
        answered.append(1)
        assert problem(called(repr, model)) is None
        for name in METHODS:
            if hasattr(model, name):
                found = called(getattr(model, name), other)
                assert problem(found) is None, (chosen, name, problem(found))

    with threadpool_limits(1):
        one()
    return len(answered)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_some_fits(name):
    fits(ESTIMATORS[name], FAST, phases=[Phase.generate])


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_many_fits(name):
    assert fits(ESTIMATORS[name], LONG) > LONG / 20


class Quoting:
    def __init__(self, error):
        self.error = error

    def __call__(self):
        raise self.error


WRONG = {
    "another error": Quoting(KeyError("X")),
    "raw words": Quoting(TypeError("unhashable type: 'list'")),
    "data": Quoting(ValueError("X holds 7.3194825e+155")),
    "a print": lambda: print("done"),
    "a warning": lambda: warnings.warn("X", RuntimeWarning, stacklevel=1),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found(name):
    assert problem(called(WRONG[name])) is not None
    assert problem(called(Quoting(ValueError("epsilon must be positive.")))) is None
