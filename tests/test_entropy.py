"""Where the randomness of a fit without a seed comes from: every source of it, of every estimator.

Noise from the system protects; blocks, coins, orders and shares of noise do so too, and each of
them has a source of its own. A source with a constant seed shows in nothing that a replay or a
report compares.
"""

import hashlib
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from configurations import ESTIMATORS

from sklearn_dp import DPKMeans, DPKTupleKMeans, FederatedDPKMeans, SampleAndAggregate
from sklearn_dp._privacy._noise import Stream
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp.federated import client_update
from sklearn_dp.model_selection import DPGridSearch

SECRET = ("noise", "share")  # first words of the tags of what has to come from the system


class Heard:
    """What the sources of a fit have made.

    Attributes
    ----------
    seeds : list of (seed, tag)
        Of each stream.
    generators : set of int
        Seeds of numpy's generators.
    words : set of bytes
        Digests of blocks of words.
    """

    def __init__(self):
        self.seeds, self.generators, self.words = [], set(), set()


@contextmanager
def listening():
    """Spies on every stream of words and every generator."""
    heard = Heard()
    init, words, generator = Stream.__init__, Stream._words, np.random.default_rng

    def opened(self, seed, tag, *place):
        heard.seeds.append((seed, tag))
        init(self, seed, tag, *place)

    def made(self, counter):
        block = words(self, counter)
        heard.words.add(hashlib.sha256(block.tobytes()).digest())
        return block

    def seeded(seed=None):
        heard.generators.add(seed)
        return generator(seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stream, "__init__", opened)
        patch.setattr(Stream, "_words", made)
        patch.setattr(np.random, "default_rng", seeded)
        yield heard


CLUSTERS = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
ROWS = np.repeat(CLUSTERS, 40, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(120, 2))
COPIES = {"sampling": "with_replacement", "epsilon": 8.0, "delta": 1e-2}


def of_clients(model, client=lambda rows: rows):
    """A fit to clients that hold the rows."""
    clients = [client(rows) for rows in np.array_split(ROWS, 6)]
    return model.fit_clients(clients, X_server=np.zeros((1, 2)) + CLUSTERS)


class Alone:
    """A client that answers by itself, and adds its noise where it is."""

    def __init__(self, rows):
        self.rows = rows

    def update(self, kind, message):
        return client_update(kind, message, self.rows)


FITS = {
    **{name: lambda cls=cls: cls().fit(ROWS) for name, cls in ESTIMATORS.items()},
    "SampleAndAggregate, copies": lambda: SampleAndAggregate(n_blocks=8, **COPIES).fit(ROWS),
    "DPKTupleKMeans, blocks": lambda: DPKTupleKMeans(3, n_tuples=4, epsilon=1e3).fit(ROWS),
    "DPKTupleKMeans, copies": lambda: DPKTupleKMeans(3, n_tuples=9, **COPIES).fit(ROWS),
    "a sample": lambda: ESTIMATORS["DPOneCluster"](n_points=40, sample_size=60).fit(ROWS),
    "clients": lambda: of_clients(FederatedDPKMeans(3, epsilon=5.0)),
    "clients that add noise": lambda: of_clients(FederatedDPKMeans(3, epsilon=5.0, n_honest=4)),
    "clients far away": lambda: of_clients(
        FederatedDPKMeans(3, epsilon=5.0, n_honest=4), client=Alone
    ),
    "a search": lambda: search("all").fit(ROWS),
    "the best of some runs": lambda: search("best").fit(ROWS),
}


def search(selection):
    grid = {"n_clusters": [2, 3]}
    return DPGridSearch(DPKMeans(bounds=5.0), grid, epsilon=4.0, selection=selection)


def heard_of(fit):
    """The sources of one fit, and the seeds that its sessions have drawn for blocks and orders."""
    with listening() as heard, trace(Trace()) as recorder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit()
    return heard, {event.output for event in recorder.events if event.kind == "seed"}


@pytest.mark.parametrize("name", FITS)
def test_two_fits_without_a_seed_have_no_bit_in_common(name):
    one, algorithms = heard_of(FITS[name])
    other, again = heard_of(FITS[name])
    for heard, drawn in ((one, algorithms), (other, again)):
        secret = {seed for seed, tag in heard.seeds if tag.startswith(SECRET)}
        assert secret == {None}, "noise that can be reproduced"
        assert min(drawn) > 2**192, "a seed of blocks that can be guessed"
    assert not algorithms & again and not one.words & other.words
    assert not one.generators & other.generators
