"""Does a fit forget all earlier fits of the same object?

scikit-learn's contract is that ``fit`` starts anew. Here more depends on it: rows of an earlier fit
that have an effect on a later one are used twice and paid for once. A fresh fit is recorded, and
the same data are fitted by an object with a past, with the recorded outputs forced on it. The
statistics have to be *equal* then, not only close: it is the same data set.

Ways in which a past may survive, each with a use that would show it (`_USES`): arrays that are
filled again (the same shape), caches by shape or by the number of columns (another shape), plans
and budgets that are kept (other parameters), and what a pickle restores (a pickle in between).
"""

import pickle
from typing import Any

import numpy as np
from scipy.special import ndtri

from ._observe import n_features_of, prepared, run_fit
from ._player import Replay
from ._replay import different, record

__all__ = ["refit_problems"]


def refit_problems(
    estimator: Any, X: Any, *, groups: Any = None, random_state: int = 0
) -> list[str]:
    """Compare a fit of a used estimator with a fresh one, under replay.

    Problems are statistics that differ at all, and whatever the two estimators show that differs.
    Before it gets `X`, the used estimator was fitted to other rows of the same shape, to rows of
    another shape, with other parameters that were then set back, and was pickled in between. Sees
    whatever of an earlier fit has an effect on a statistic or on anything shown: exact, no false
    alarms. Does not see state that only fits of other objects leave behind.
    """
    fresh = record(estimator, X, groups=groups, random_state=random_state)
    if fresh.problems:
        return list(fresh.problems)
    found = []
    for name, use in _USES.items():
        used = use(prepared(estimator, random_state=random_state), np.asarray(X, dtype=float))
        units = np.arange(len(X) if groups is None else len(set(groups)))
        replay = Replay(fresh.events, units)
        outcome = run_fit(used, X, groups, recorder=replay)
        # Which equal objects are one object changes a pickle and tells nothing: compare memory.
        faces = [
            {name: shown for name, shown in each.face().items() if name != "pickle"}
            for each in (fresh.outcome, outcome)
        ]
        texts = [
            *replay.finish(),
            *(
                f"{entry}: the statistic is another one"
                for entry, ratio in replay.ratios.items()
                if ratio > 0
            ),
            *different(faces[0], faces[1], "from a fresh fit"),
        ]
        found += [f"after {name}: {text}" for text in texts]
    return found


def _other_rows(X: Any) -> np.ndarray:
    """Rows of the same shape that are unlike the usual data.

    Far from the usual data, and of another spread: a row that is left over moves every sum.
    """
    rng = np.random.default_rng(1)
    return 50 + 7 * ndtri(rng.random(np.shape(X)))


def _same_shape(used: Any, X: Any) -> Any:
    run_fit(used, _other_rows(X))
    return used


def _another_shape(used: Any, X: Any) -> Any:
    run_fit(used, _other_rows(np.zeros((2 * len(X) + 1, n_features_of(X) + 2))))
    return used


def _other_parameters(used: Any, X: Any) -> Any:
    """A past fit with other parameters, which were then set back.

    Budget, delta and bounds: a kept plan would show as another noise scale, kept bounds as another
    statistic.
    """
    other = {"epsilon": 7.0, "rho": None, "delta": 1e-3, "bounds": 1e4}
    before = {name: getattr(used, name) for name in other.keys() & used.get_params(deep=False)}
    used.set_params(**{name: other[name] for name in before})
    run_fit(used, _other_rows(X))
    return used.set_params(**before)


def _pickled(used: Any, X: Any) -> Any:
    run_fit(used, _other_rows(X))
    return pickle.loads(pickle.dumps(used))


_USES = {
    "a fit to other rows": _same_shape,
    "a fit to another shape": _another_shape,
    "a fit with other parameters": _other_parameters,
    "a fit and a pickle": _pickled,
}
