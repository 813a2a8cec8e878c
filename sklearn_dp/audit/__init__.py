"""Audit private estimators: replay fits on neighbors, test the noise, search for leaks.

Use these audits on the estimators of this package or on your own (any estimator that derives from
the base class and releases through a session):

* :func:`check_dp_estimator`: everything below as one list of checks. Start here;
* :func:`replay_audit`: fits D and a neighbor D', with the outputs of the first fit forced on the
  second. Exact, no false alarms; finds wrong sensitivities and control flow that depends on
  unreleased values;
* :func:`noise_audit`: tests whether the noise has the claimed distribution;
* :func:`scan_for_leaks`: searches pickles, texts, warnings and errors for values of the data;
* :func:`record_releases` and :func:`replay_releases`: the hooks behind the replays, for auditors
  with their own comparison.

None of them proves a guarantee. A replay and the noise tests together check the premises of a
proof: that statistics are as close as claimed, that the noise has the claimed distribution, that
nothing else is shown, and that the costs add up. The proofs are comments in the code.

Internals: `_observe` runs one fit and collects what it shows; `_replay` forces a recording on
another fit and compares the two; `_laws` defines what a release of each kind must be; `_recount`
adds up the costs; `_noise_law` tests noise; `_checks` combines everything. The audit imports the
kernel's sessions and traces, never its formulas.
"""

from .._privacy._trace import Draw, Event
from ._checks import check_dp_estimator
from ._estimators import all_estimators
from ._noise_law import noise_audit
from ._observe import Neighbor, neighboring_pairs, scan_for_leaks
from ._replay import ReplayResult, record_releases, replay_audit, replay_releases

__all__ = [
    "Draw",
    "Event",
    "Neighbor",
    "ReplayResult",
    "all_estimators",
    "check_dp_estimator",
    "neighboring_pairs",
    "noise_audit",
    "record_releases",
    "replay_audit",
    "replay_releases",
    "scan_for_leaks",
]


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name[:2] == "__")})
