"""What an audit knows of a whole fit inside another one: paid at once, and spent within that."""

import numpy as np
import pytest

from sklearn_dp import DPKMeans
from sklearn_dp._privacy._trace import Event, Trace, trace
from sklearn_dp.audit import _recount
from sklearn_dp.audit._recount import paid
from sklearn_dp.audit.mechanisms import law_of
from sklearn_dp.model_selection import DPGridSearch

X = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 40, axis=0)


def recorded(selection):
    search = DPGridSearch(
        DPKMeans(bounds=2.0), {"n_clusters": [2, 3]}, epsilon=5.0, selection=selection
    )
    recorder = Trace()
    with trace(recorder):
        search.fit(X)
    return recorder.events, search


@pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning")
def test_what_inner_fits_release_costs_no_more_than_they_paid():
    """Two candidates and the last fit; inside, each step and each score."""
    events, search = recorded("all")
    outer = [event for event in events if event.kind == "fit" and "nested" not in event.public]
    assert [event.entry for event in outer] == ["candidates", "candidates", "last fit"]
    inside = [event for event in events if event.kind != "fit" and "nested" in event.public]
    released = sum(
        _recount._COSTS[event.kind](event) for event in inside if event.scale is not None
    )
    whole = sum(event.cost for event in outer)
    assert 0.5 * whole < released <= whole * (1 + 1e-9)
    assert whole <= search.privacy_report_.rho * (1 + 1e-9)


@pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning")
def test_only_what_is_paid_for_counts():
    """The fits inside have paid for their releases; a step pays for a whole search."""
    assert {event.kind for event in paid(recorded("all")[0])} == {"fit"}
    assert [event.kind for event in paid(recorded("best")[0])] == ["step"]


def test_a_fit_of_gaussian_releases_counts_as_gaussian():
    def total(gaussian):
        return [Event("fit", "a", cost=0.5, public={"delta": 0.0, "only_gaussian": gaussian})]

    assert _recount.all_gaussian(total(True))
    assert not _recount.all_gaussian(total(False))
    assert _recount.rho_released(total(True)) == (0.5, 0.0)


def test_paying_releases_nothing():
    event = Event("fit", "a", cost=0.5, public={"delta": 0.0, "only_gaussian": True})
    law = law_of(event)
    assert law.replay(None, event, event) is None
    assert law.rho(event) == 0.5
    assert [len(part) for part in law.numbers(event)] == [0, 0]
