"""Every release that any value of any parameter can lead to is proved, and replayed here.

`python tests/option_audits.py` prints how many there are.
"""

import inspect
import math
from itertools import product

import pytest
from configurations import ESTIMATORS
from fuzz.arguments import choices
from option_audits import NAMES, SEARCHES, Release, proved, replayed, walk
from threadpoolctl import threadpool_limits

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

# Releases that no row moves by more than half of the claim in the few pairs of these replays, and
# why. What their sensitivities are is tested in the files that `doc/proofs/releases.toml` names.
_OF_A_MEAN = "2 R / m is for a row at the far end of a core; friends are nearer to each other"
HARDLY_MOVED = {
    "DPGaussianMixture: partition/ball #/radius (exponential)": "few rows are near any new one",
    "DPGaussianMixture: partition/level #/ball/test (above threshold)": "scores are clear",
    "DPGaussianMixture: tuples/average (friendly average)": _OF_A_MEAN,
    "DPGaussianMixture: tuples/core (friendly core)": "a tuple in the place of another is a friend",
    "DPGaussianMixture: tuples/size (friendly average)": "the same",
    "DPKTupleKMeans: tuples (approximate DP)": "far balls leave most tuples of neighbors alike",
    "DPKTupleKMeans: tuples/average (friendly average)": _OF_A_MEAN,
    "FriendlyCovariance: core covariance (proportional noise)": _OF_A_MEAN,
    "FriendlyMean: core mean (friendly average)": _OF_A_MEAN,
    "SampleAndAggregate: tuples/average (friendly average)": _OF_A_MEAN,
    "SampleAndAggregate: tuples/size (friendly average)": "an output in the place of a friend",
}


def documented(name):
    """The words that docstrings allow, as `walk` has them."""
    cls = ESTIMATORS.get(name)
    parameters = inspect.signature(cls).parameters if cls else ()
    return {f"{each}={word!r}" for each in parameters for word in choices(cls, each)}


def lines(releases, settings):
    """What is missing, and a setting that plans it."""
    return "".join(f"\n{each}, as of {settings.get(each)}" for each in sorted(releases))


def check(name, found):
    """All that was planned is proved, and released in a replay; nothing else is told."""
    told = proved(name)
    assert len(told) == len(set(told)), "told twice in doc/proofs/releases.toml"
    result, ratios = replayed(name)
    planned, settings = {*found.settings, *ratios}, found.settings
    missing = planned - {*told}
    assert not missing, f"no proof in doc/proofs/releases.toml:{lines(missing, settings)}"
    missing = planned - ratios.keys()
    assert not missing, f"no 'releases' in tests/configurations.py:{lines(missing, settings)}"
    assert {*told} <= planned, "doc/proofs/releases.toml tells what no plan holds"
    assert result.violations == [] and result.n_voided <= 0.1 * result.n_pairs
    return ratios


@pytest.mark.parametrize("name", NAMES)
def test_every_release_is_proved_and_replayed(name):
    """One value of one parameter at a time; and a statistic that counts double is a violation.

    Steps that are paid as a whole have no ratio of their own: what they release inside has.
    """
    found = walk(name)
    with threadpool_limits(1):
        ratios = check(name, found)
    assert documented(name) <= {value for value, _ in found.triples}, "words that no plan takes"
    whole = {each for each, ratio in ratios.items() if math.isnan(ratio)}
    # Searches, segments and topics pay for whole fits, whose own releases are replayed elsewhere.
    fits = {*SEARCHES, "DPBySegment", "DPTopics"}
    assert name in fits or {each.law for each in whole} <= {"approximate DP"}
    still = {str(each) for each, ratio in ratios.items() if ratio <= 0.5}
    assert still <= HARDLY_MOVED.keys(), "give them rows that move them, or a reason"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_release_of_two_values_is_proved_and_replayed(name):
    """Few features and many, for rows and for groups."""
    facts = [{"n_features": d, "unit": unit} for d, unit in product((2, 20), ("row", "group"))]
    with threadpool_limits(1):
        check(name, walk(name, pairs=True, facts=facts))


def test_a_reason_is_for_a_release():
    told = {str(each) for name in NAMES for each in proved(name)}
    assert told >= HARDLY_MOVED.keys()


def test_a_release_without_proof_or_replay_is_named(monkeypatch):
    """The test itself: it fails by the name of the release, and tells a setting."""
    found = walk("DPPCA")
    new = Release("DPPCA", "new", "gaussian")
    found.settings[new] = {"whiten": True}, {}
    with pytest.raises(
        AssertionError, match=r"no proof(.|\n)*DPPCA: new \(gaussian\)(.|\n)*whiten"
    ):
        check("DPPCA", found)
    told = [*proved("DPPCA"), new]
    monkeypatch.setitem(check.__globals__, "proved", lambda name: told)
    with pytest.raises(AssertionError, match=r"no 'releases'(.|\n)*DPPCA: new"):
        check("DPPCA", found)
