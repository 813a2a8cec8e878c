"""What is not installed is named, with the extra that brings it."""

import sys

import numpy as np
import pytest

from sklearn_dp import DPCoreset, DPKMeans, FriendlyMean, PrivacyBudget, PrivacyLedger
from sklearn_dp._privacy._optional import extra
from sklearn_dp.federated import flower_client
from sklearn_dp.inspection import utility_curve

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
]


def fitted():
    return FriendlyMean(bounds=1.0, random_state=0).fit(np.zeros((50, 2)))


def coreset():
    return DPCoreset(2, bounds=1.0, random_state=0).fit(np.zeros((50, 2)))


def curve():
    return utility_curve(
        DPKMeans(2, bounds=1.0), n_units=50, n_features=2, epsilons=[1.0], n_repeats=1,
        random_state=0,
    )  # fmt: skip


CALLS = {
    "plan": ("pandas", "pandas", lambda: DPKMeans(2).privacy_plan(2).to_frame),
    "report": ("pandas", "pandas", lambda: fitted().privacy_report_.to_frame),
    "summary": ("pandas", "pandas", lambda: fitted().summary().to_frame),
    "coreset": ("pandas", "pandas", lambda: coreset().to_frame),
    "curve": ("pandas", "pandas", lambda: curve().to_frame),
    "ledger": ("dp_accounting", "accounting",
               lambda: PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-6)).to_dp_accounting),
    "flower": ("flwr", "federated", lambda: lambda: flower_client(print)),
}  # fmt: skip


@pytest.mark.parametrize(("library", "name", "make"), CALLS.values(), ids=CALLS)
def test_what_is_missing_is_named(library, name, make, monkeypatch):
    call = make()
    for module in [known for known in sys.modules if known.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [Missing(library), *sys.meta_path])
    with pytest.raises(ImportError) as caught:
        call()
    assert str(caught.value) == (f'{library} is not installed: pip install "sklearn-dp[{name}]"')


class Missing:
    """Finds no module of a library."""

    def __init__(self, library):
        self.library = library

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == self.library:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_other_errors_of_a_library_are_not_reworded():
    with pytest.raises(ImportError, match="broken"), extra("plot"):
        raise ImportError("broken")
