"""Audit private estimators: replay on neighbours, test noise, search for leaks, plant bugs.

The audits of this package, which users run on their own estimators too (anything that derives from
the base class and releases through a session):

* :func:`check_dp_estimator`: everything below, as one list of checks. Start here;
* :func:`replay_audit`: a fit on D and one on a neighbour D', with the outputs of the first forced
  on the second. Exact, no false alarms; finds wrong sensitivities and control flow on unreleased
  values;
* :func:`drawn_audit`: the same for data and parameters drawn at random, for bugs behind a trigger;
* :func:`noise_audit`: does the noise follow the law that it claims;
* :func:`scan_for_leaks`: do values of the data show in pickles, texts, warnings, errors;
* :func:`certify`: a black-box test, a lower bound of epsilon from thousands of fits; for any
  estimator;
* :func:`record_releases` and :func:`replay_releases`: the hook on which the replays stand, for
  auditors who bring their own comparison;
* :func:`killer` and :func:`mutant`: seeded bugs, which show that the audits above can fail.

None of them proves a guarantee. A replay and the tests of the noise together check what a proof
takes for granted: that statistics are as close as claimed, that noise has the claimed law, that
nothing else is shown, and that the costs add up. The proofs are comments in the code.

Inside: `_observe` runs one fit and collects what it shows; `_player` forces a recording on another
fit; `_replay` compares the two; `laws` says what a release of each kind has to be; `_claims` and
`_recount` add up the costs; `_distribution`, `_noise_law` and `_repeats` test noise; `_checks` and
`_loss_checks` put it all together. The audit imports the kernel's sessions and traces, never its
formulas.
"""

from .._privacy._trace import Draw, Event
from . import mutants  # noqa: F401 - registers them
from ._certificate import Certificate, Finding, certify
from ._certificate.cases import Pair
from ._checks import check_dp_estimator
from ._discovery import all_estimators
from ._drawn import drawn_audit
from ._leaks import scan_for_leaks
from ._mutation import MUTANTS, Mutant, killer, mutant
from ._neighbours import Neighbour, neighbouring_pairs
from ._noise_law import noise_audit
from ._recorder import record_releases, replay_releases
from ._replay import replay_audit
from ._replay_result import ReplayResult

__all__ = [
    "MUTANTS",
    "Certificate",
    "Draw",
    "Event",
    "Finding",
    "Mutant",
    "Neighbour",
    "Pair",
    "ReplayResult",
    "all_estimators",
    "certify",
    "check_dp_estimator",
    "drawn_audit",
    "killer",
    "mutant",
    "neighbouring_pairs",
    "noise_audit",
    "record_releases",
    "replay_audit",
    "replay_releases",
    "scan_for_leaks",
]
