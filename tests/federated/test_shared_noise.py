"""Clients that add the noise: what they send, who is counted on, and replays."""

import warnings
from functools import partial

import numpy as np
import pytest
from federated_states import Odd, replayed, rows
from sklearn.base import clone

from sklearn_dp import FederatedDPKMeans
from sklearn_dp._privacy.mechanisms import shares as _shares
from sklearn_dp.exceptions import UtilityWarning
from sklearn_dp.federated import _clients, _federated_dp_kmeans, _server, client_update

D, M, HONEST = 4, 6, 4  # columns, clients, and those that are counted on
SERVER = np.vstack([rows(15, 5), np.zeros((1, D))])


def model(**options):
    options = {"epsilon": 5.0, "n_lloyd": 1, "n_honest": HONEST, "random_state": 0, **options}
    return FederatedDPKMeans(3, **options)


def parties(seed=0, size=7):
    return [rows(size + j, seed + j) for j in range(M)]


# -- what clients send -----------------------------------------------------------------------------


def states(unit):
    """The states of the rounds of a fit to clients that add noise."""
    seen = []

    def watch(state, total, session, n_answers=None):
        seen.append(state)
        return _server.server_update(state, total, session, n_answers)

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(_federated_dp_kmeans, "server_update", watch)
        model(privacy_unit=unit).fit_clients(parties(), X_server=SERVER)
    return seen


STATES = [state for unit in ("row", "client") for state in states(unit)]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.kind)
def test_an_answer_is_the_exact_one_and_noise(state):
    """What is left without the noise is the answer of the protocol without it, in fine steps."""
    message = state.message
    plain = client_update(state.kind, message | {"noise": np.empty(0)}, rows(9))
    noise = client_update(state.kind, message, rows(0), _shares.NoiseShares(3, "a"))
    both = client_update(state.kind, message, rows(9), _shares.NoiseShares(3, "a"))
    for name, bits in zip(plain, message["noise"][:, 2], strict=True):
        assert np.array_equal(both[name] - noise[name], plain[name] << int(bits))
        assert np.count_nonzero(noise[name]) > 0.9 * noise[name].size
    fresh = [client_update(state.kind, message, rows(0)) for _ in range(2)]
    assert all(not np.array_equal(fresh[0][name], fresh[1][name]) for name in plain)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.kind)
@pytest.mark.parametrize(
    "bad",
    [
        np.zeros((3, D + 1)),
        None,
        "no rows",
        np.full((3, D), np.nan),
        [[10**400] * D],
        [[1.0] * (D + 1), [2.0]],
        Odd,
    ],
    ids=["wide", "none", "words", "nan", "beyond floats", "ragged", "odd"],
)
def test_a_client_whose_rows_are_no_use_adds_its_noise_all_the_same(state, bad):
    """Others count on it: whether it comes may not depend on anybody's rows."""
    bad = Odd() if bad is Odd else bad
    found = client_update(state.kind, state.message, bad, _shares.NoiseShares(3, "a"))
    empty = client_update(state.kind, state.message, rows(0), _shares.NoiseShares(3, "a"))
    assert all(np.array_equal(found[name], empty[name]) for name in empty)


def test_the_sum_of_the_shares_has_the_variance_that_is_needed():
    """Of n_honest clients: one release after the other, scale against the session's own."""
    for state in STATES:
        claims = state.claims
        for (name, (bound, pattern, _)), (sigma, off, bits) in zip(
            claims.items(), state.message["noise"], strict=True
        ):
            rho = _server._rho_of(PLANS[state.setup.per_client][name])
            need = bound / np.sqrt(2 * rho) * 2.0**bits
            assert sigma * np.sqrt(HONEST) == pytest.approx(need, rel=1e-9)
            assert sigma * np.sqrt(HONEST) >= need
            assert off == pytest.approx(sigma * np.min(pattern), rel=1e-12)


def test_a_share_of_a_second_moment_is_drawn_at_what_each_entry_is_told(monkeypatch):
    """On the diagonal at the first scale of the message, off it at the root of a half of that."""
    drawn, draw = {}, _shares.NoiseShares.draw

    def seen(self, name, number, sigma, shape):
        drawn[name] = np.broadcast_to(sigma, shape)
        return draw(self, name, number, sigma, shape)

    monkeypatch.setattr(_shares.NoiseShares, "draw", seen)
    asked = [state for state in STATES if "second moment" in state.claims]
    for state in asked:
        drawn.clear()
        client_update(state.kind, state.message, rows(9), _shares.NoiseShares(3, "a"))
        place = list(state.claims).index("second moment")
        sigma = state.message["noise"][place][0]
        diagonal = np.equal(*np.triu_indices(len(state.message["center"])))
        told = np.where(diagonal, 1.0, np.sqrt(0.5))
        assert drawn["second moment"] == pytest.approx(sigma * told, rel=1e-12)
    assert asked


PLANS = {
    per_client: model().privacy_plan(D, unit="group" if per_client else "row", X_server=SERVER)
    for per_client in (False, True)
}


# -- who is counted on -----------------------------------------------------------------------------


class Gone:
    def update(self, kind, message):
        raise ConnectionError


def test_a_round_with_too_few_answers_ends_the_fit():
    """Four besides the one in question: five of six are enough, four are not."""
    enough = [Gone(), *parties()[1:]]
    with pytest.warns(UtilityWarning, match="client 0: ConnectionError"):
        assert model().fit_clients(enough, X_server=SERVER).n_rounds_ == 4
    with pytest.raises(RuntimeError, match="only 4 clients"):
        model().fit_clients([Gone(), *enough[:-1]], X_server=SERVER)
    with pytest.raises(RuntimeError, match="n_honest=4"):
        model().fit_clients([], X_server=SERVER)


def test_the_report_tells_the_relation_and_the_trust():
    report = model().fit_clients(parties(), X_server=SERVER).privacy_report_
    assert report.neighbors == "add or remove the rows of one group"
    assert "at least 4" in report.notes[-1] and report.epsilon <= 5.0
    assert all(row["delta"] > 0 for row in report.releases)
    by_rows = model(privacy_unit="row").fit_clients(parties(), X_server=SERVER).privacy_report_
    assert by_rows.neighbors == "add or remove one row"


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.kind)
@pytest.mark.parametrize("number", [2**61, 2**62, -(2**61), 2**63 - 1, -(2**63)])
def test_no_answer_swallows_the_noise_of_others(state, number):
    """What is left without an answer that is known is the sum of the others, wherever it comes."""
    shares = [_shares.NoiseShares(3, name) for name in "abc"]
    others = [client_update(state.kind, state.message, rows(9), share) for share in shares]
    flood = {name: np.full(value.shape, number) for name, value in others[0].items()}
    for place in range(len(others) + 1):
        answers = [(a, None) for a in [*others[:place], flood, *others[place:]]]
        total, failed = _clients.total_of(state.kind, state.message, answers)
        assert not failed
        for name, value in total.items():
            left = value.astype(object) - flood[name]
            assert np.array_equal(left, sum(other[name].astype(object) for other in others))


def test_the_same_seed_gives_the_same_shares_and_none_fresh_ones():
    one, two = (model().fit_clients(parties(), X_server=SERVER) for _ in range(2))
    assert np.array_equal(one.cluster_centers_, two.cluster_centers_)
    fresh = [
        clone(model()).set_params(random_state=None).fit_clients(parties(), X_server=SERVER)
        for _ in range(2)
    ]
    assert not np.array_equal(fresh[0].server_weights_, fresh[1].server_weights_)


# -- audits ----------------------------------------------------------------------------------------


def with_one_changed(X, unit, rng):
    """Neighbors of a federation with the same clients: other rows at one of them, or one row."""
    victim, scale = int(rng.integers(M)), 10.0 ** rng.integers(-3, 7)
    found = list(X)
    if unit == "row":
        extra = scale * rng.normal(size=(1, D))
        add = rng.random() < 0.5
        found[victim] = np.vstack([X[victim], extra]) if add else X[victim][1:]
        return found
    size = int(rng.integers(0, 30))
    found[victim] = [
        rows(0),
        scale * rng.normal(size=(size, D)),
        np.full((3, D), 1e300),
        np.repeat(SERVER[:1], 40, axis=0),
        np.zeros((2, D + 1)),
    ][rng.integers(5)]
    # One of the two is without rows.
    X[victim] = rows(0)
    return found


def audit_clients(unit, pairs):
    """Replay of fits to clients: violations, and the largest distances over the claims."""
    rng = np.random.default_rng(0)

    def fits():
        for pair in range(pairs):
            X, estimator = parties(pair), model(privacy_unit=unit, random_state=pair)
            other = with_one_changed(X, unit, rng)
            fit = [
                partial(clone(estimator).fit_clients, each, X_server=SERVER) for each in (X, other)
            ]
            yield *fit, np.arange(M)

    return replayed(fits(), D, "row" if unit == "row" else "group", SERVER)


@pytest.mark.quick("row")
@pytest.mark.parametrize("unit", ["row", "client"])
def test_some_neighbors_with_the_same_clients(unit):
    violations, ratios = audit_clients(unit, 12)
    assert violations == [] and max(ratios.values()) > 0.5
