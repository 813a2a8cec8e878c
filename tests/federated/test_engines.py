"""Clients that want to harm: what they get, what they send, and seeded bugs that let them."""

import contextlib
import threading

import numpy as np
import pytest

from sklearn_dp import FederatedDPKMeans, PrivacyLedger
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._queries import client_rounds as _rounds
from sklearn_dp.audit._replay import Replay
from sklearn_dp.federated import _clients, _server, _state, client_update
from sklearn_dp.federated._clients import LocalEngine, check_distinct

D, K, SECRET = 4, 3, "row 17"
PLACES = 2 * np.random.default_rng(9).uniform(-1, 1, size=(K, D))
SERVER = np.vstack([PLACES + shift for shift in (0.0, 0.1, -0.1)])


def rows(n, seed=0):
    return PLACES[np.arange(n) % K] + 0.3 * np.random.default_rng(seed).normal(size=(n, D))


class Honest:
    """Answers as it should, and remembers the bounds that it was told."""

    def __init__(self, X, told=None):
        self.X, self.told = X, told

    def update(self, kind, message):
        if self.told is not None:
            self.told.append((kind, {name: value.copy() for name, value in message.items()}))
        return client_update(kind, message, self.X)


class Death(BaseException):
    """Not even an Exception."""


class Trap:
    """Has the methods that numpy and Python ask for, and each of them ends the process."""

    def die(self, *arguments, **options):
        raise SystemExit(SECRET)

    __array__ = __len__ = __iter__ = __getitem__ = __int__ = __index__ = __float__ = die


class TrapDict(dict):
    def __getitem__(self, name):
        raise Death(SECRET)


def rewrite(message, rng):
    """Everything that can be done to a message, and to what it is made of."""
    for value in list(message.values()):
        for array in (value, value.base):
            if isinstance(array, np.ndarray):
                for attack in (
                    lambda a: a.setflags(write=True),
                    lambda a: a.fill(1e-9),
                    lambda a: setattr(a, "shape", (a.size,)),
                    lambda a: setattr(a, "dtype", np.int64),
                ):
                    with contextlib.suppress(ValueError, TypeError, AttributeError):
                        attack(array)
    for name in message:
        message[name] = rng.normal(size=message[name].shape)
    message["limit"], message["shares"] = np.array([1e-9]), np.full(2, 1e-9)
    if rng.integers(2):
        message.clear()


def answers_of(good, rng):
    """Answers of every wrong kind, and right ones of any size."""
    shapes = {name: value.shape for name, value in good.items()}
    sizes = [0, 1, -1, 2**20, 2**31, 2**61, 2**62, 2**63 - 1, -(2**63), 2**64 - 1]
    flood = sizes[rng.integers(len(sizes))]
    return [
        {name: np.full(shape, flood) for name, shape in shapes.items()},
        {name: rng.integers(-(2**63), 2**63 - 1, size=shape) for name, shape in shapes.items()},
        {name: np.full(shape, -100, dtype=np.int8) for name, shape in shapes.items()},
        {name: np.ones(shape, dtype=">i4") for name, shape in shapes.items()},
        {name: np.full(shape, 2**70) for name, shape in shapes.items()},
        {name: np.full(shape, np.nan) for name, shape in shapes.items()},
        {name: np.ones(shape, dtype=bool) for name, shape in shapes.items()},
        {name: np.ones(shape, dtype="m8[s]") for name, shape in shapes.items()},
        {name: np.ones(shape, dtype="i4,i4") for name, shape in shapes.items()},
        {name: np.broadcast_to(np.int64(1), (10**6, *shape)) for name, shape in shapes.items()},
        {name: np.ma.array(np.ones(shape, dtype=int), mask=True) for name, shape in shapes.items()},
        {name: [1] * shape[0] for name, shape in shapes.items()},
        dict.fromkeys(shapes, Trap()),
        TrapDict(good),
        Trap(),
        None,
        [],
        SECRET,
        {1: 2},
    ]


DEATHS = [
    ValueError,
    SystemExit,
    KeyboardInterrupt,
    GeneratorExit,
    Death,
    MemoryError,
    type(SECRET, (Exception,), {}),
    _clients.AnswerError,
]


class Malicious:
    """Rewrites what it gets, keeps all of it, answers anything, and dies in every way."""

    def __init__(self, seed):
        self.rng, self.kept = np.random.default_rng(seed), []

    def update(self, kind, message):
        for old in self.kept:
            if isinstance(old, dict):
                for value in old.values():
                    if isinstance(value, np.ndarray) and value.flags.writeable:
                        value.fill(1)
        good = client_update(kind, dict(message), rows(5))
        rewrite(message, self.rng)
        choice = self.rng.integers(len(DEATHS) + 3 * 19)
        if choice < len(DEATHS):
            raise DEATHS[choice](SECRET)
        answer = answers_of(good, self.rng)[(choice - len(DEATHS)) % 19]
        self.kept += [message, answer]
        return answer


def federated(parts, seed, unit, told=None):
    """A fit of honest clients between two malicious ones, which do the same at every call."""
    model = FederatedDPKMeans(
        K, epsilon=5.0, bounds=4.0, n_lloyd=2, privacy_unit=unit, random_state=seed
    )
    clients = [Malicious(seed), *(Honest(X, told) for X in parts), Malicious(seed + 1000)]
    return model.fit_clients(clients, X_server=SERVER)


def audit(seed, unit):
    """What is wrong with one fit beside malicious clients, and with a neighbor of it."""
    parts, told, recorder = [rows(7, seed + j) for j in range(3)], [], Trace()
    with trace(recorder):
        fitted = federated(parts, seed, unit, told)
    wrong = [] if np.isfinite(fitted.cluster_centers_).all() else ["centers"]
    # All honest clients are told the same, and clip to no more than what is claimed.
    for one, other in zip(told[::3], told[1::3], strict=True):
        if one[0] != other[0] or any(
            not np.array_equal(one[1][name], other[1][name]) for name in one[1]
        ):
            wrong.append("clients are told different things")
    bounds = [
        bound for kind, message in told[::3] for bound in _rounds.row_bounds(kind, message).values()
    ]
    events = [event for event in recorder.events if event.kind == "gaussian"]
    for event, bound in zip(events, bounds, strict=True):
        if np.max(event.sensitivity) < (bound if unit == "row" else _rounds.CLIENT_STEPS):
            wrong.append(f"{event.entry}: claimed less than clients were told")
    far = np.full((1, D), 1e300)
    near = [np.vstack([parts[0], far]), *parts[1:]] if unit == "row" else [*parts, 5 + rows(9)]
    replay = Replay(recorder.events, None)
    with trace(replay):
        federated(near, seed, unit)
    return wrong + replay.finish()


@pytest.mark.quick("row-8")
@pytest.mark.parametrize("fits", [8, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("unit", ["row", "client"])
def test_no_malice_changes_a_claim_or_what_others_are_told(unit, fits):
    """Two malicious clients in each pair of fits, five rounds each: 20 attacks a pair."""
    assert [found for seed in range(fits) for found in audit(seed, unit)] == []


# -- one by one ------------------------------------------------------------------------------------


def test_an_answer_is_copied_before_it_is_looked_at():
    """A client goes on changing what it has sent, in a thread of its own."""
    state = next(_states())
    good = client_update(state.kind, state.message, rows(9))
    sent = {name: value.copy() for name, value in good.items()}
    stop = threading.Event()

    def change():
        while not stop.is_set():
            for value in sent.values():
                value.fill(2**63 - 1)
                value.fill(0)

    thread = threading.Thread(target=change)
    thread.start()
    for _ in range(2000):
        found = _clients.check_answer(state.kind, state.message, sent)
        assert all(np.abs(value).max() <= 2**61 for value in found.values())
    stop.set()
    thread.join()
    engine = LocalEngine([Honest(rows(3)), Keeps(sent)])
    (_, (kept, _)) = engine.ask(state.kind, state.message)
    assert not any(np.shares_memory(kept[name], sent[name]) for name in kept)


class Keeps:
    def __init__(self, answer):
        self.answer = answer

    def update(self, kind, message):
        return self.answer


def _states():
    setup = _state.Setup(K, D, FederatedDPKMeans(bounds=4.0)._domain(D), SERVER)
    yield _server.first_message(setup, None)


def test_operators_are_told_no_words_of_clients():
    state, deaths = next(_states()), [kind(SECRET) for kind in DEATHS]
    _, failed = _clients.total_of(state.kind, state.message, [(None, error) for error in deaths])
    assert [reason for _, reason in failed] == [
        "ValueError",
        "SystemExit",
        "KeyboardInterrupt",
        "GeneratorExit",
        "an exception of its own",
        "MemoryError",
        "an exception of its own",
        "an exception of its own",
    ]


# -- who is there twice ----------------------------------------------------------------------------


class Site:
    def __init__(self, **names):
        vars(self).update(names)

    def read(self):
        return rows(3)


X = rows(30)
SITE = Site()


@pytest.mark.parametrize(
    "clients",
    [
        [X, X],
        [X, X[:]],
        [X, X[:1]],
        [X[:10], X[9:20]],
        [X[::2], X[::3]],
        [X, X.T],
        [X[::-1], X[4:5]],
        [X.tolist()] * 2,
        [SITE, Honest(X), SITE],
        [SITE.read, SITE.read],
        [X, X.view(np.int64)],
        [X[j::400] for j in range(25)] + [X[24:25]],
        {"a": X, "b": X},
    ],
)
def test_the_same_rows_are_not_two_clients(clients):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-6), unit="group")
    with pytest.raises(ValueError, match="clients: "):
        FederatedDPKMeans(2, ledger=ledger).fit_clients(clients, n_features=D)
    assert ledger.entries == ()


def test_a_client_id_is_no_number_in_the_line():
    """An id of 0 for the second client is not the number of the first one, which has none."""
    check_distinct([Site(), Site(client_id=0), Site(client_id=2)])
    with pytest.raises(ValueError, match="client_id"):
        check_distinct([Site(client_id=0), Site(), Site(client_id=0)])
    with pytest.raises(TypeError, match="hashable"):
        check_distinct([Site(client_id=[]), Site(client_id=[])])


class Hidden(np.ndarray):
    """An array whose own code says that it is nowhere, or quotes rows."""

    size = 0

    @property
    def __array_interface__(self):
        raise ValueError("row 17")


def test_a_class_of_arrays_does_not_say_where_its_rows_are():
    check_distinct([X.copy().view(Hidden), X])
    with pytest.raises(ValueError, match="share memory"):
        check_distinct([X[:3].view(Hidden), X[1:]])
