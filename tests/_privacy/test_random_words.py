"""Where random words come from: streams, seeds, forks, threads and copies."""

import copy
import hashlib
import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from kernel_alone import KERNEL_ALONE

import sklearn_dp
from sklearn_dp._privacy._noise import BLOCK, NoiseSource

ROOT = str(Path(sklearn_dp.__file__).parents[1])
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform does not fork")


# -- streams --------------------------------------------------------------------------------------


def test_the_seeded_stream_is_the_documented_one():
    data = b"".join(
        hashlib.shake_256(f"sklearn_dp/noise/1|7|{i}|some|tag".encode()).digest(8 * BLOCK)
        for i in range(3)
    )
    expected = np.frombuffer(data, dtype="<u8")
    assert np.array_equal(NoiseSource(7, "some|tag").bits(3 * BLOCK), expected)


def test_no_word_serves_twice():
    source, words = NoiseSource(9), NoiseSource(9).bits(40)
    source.rounded_gaussian(1e6, 10)
    source.rounded_laplace(1e6, (2, 5))
    source.uniform_integers(8, 10)
    assert np.array_equal(source.bits(10), words[30:])


def test_seeds_and_tags_separate_streams():
    streams = [
        NoiseSource(*key).bits(4).tobytes()
        for key in [(0,), (1,), (10,), (1, "0"), (1, "noise2"), (2**200,), (2**200 + 1,)]
    ]
    assert len(set(streams)) == len(streams)
    assert np.array_equal(NoiseSource(np.int64(3)).bits(5), NoiseSource(3).bits(5))


def test_numpys_global_seed_has_no_part_in_it():
    draws = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        draws.append(NoiseSource().rounded_gaussian(2.0**30, 100))
        assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    assert not np.any(draws[0] == draws[1])


def fresh_copies(source):
    return [copy.copy(source), copy.deepcopy(source), pickle.loads(pickle.dumps(source))]


def test_copies_of_an_unseeded_source_share_no_words():
    source = NoiseSource()
    source.bits(10)
    draws = [each.bits(100) for each in [*fresh_copies(source), source]]
    assert len(np.unique(np.concatenate(draws))) == 400
    source.rounded_gaussian(1.0, 5)
    assert len(pickle.dumps(source)) < 300  # no room for words


def test_threads_share_a_source_but_no_words():
    source, found = NoiseSource(4), []
    threads = [threading.Thread(target=lambda: found.extend(
        source.bits(7) for _ in range(400))) for _ in range(6)]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.concatenate(found)
    assert np.array_equal(np.sort(words), np.sort(NoiseSource(4).bits(len(words))))


# -- other processes ------------------------------------------------------------------------------

# A source with words left over, a process that has its memory, and what the two draw next. `way` is
# how the process is made; its number is made to look like that of its parent, as after a reused
# number or in another container.
CHILD = """
import ctypes, json, multiprocessing, os, sys
from sklearn_dp._privacy._noise import NoiseSource

way = sys.argv[1]
source, number = NoiseSource(), os.getpid()
source.bits(10)
read, write = os.pipe()
child = ctypes.PyDLL(None).fork() if way == "foreign code" else os.fork()
if not child:
    os.getpid = lambda: number
    if way == "grandchild" and os.fork():
        os._exit(0)
    os.write(write, source.bits(64).tobytes())
    os._exit(0)
os.waitpid(child, 0)
theirs = os.read(read, 8 * 64)
print(json.dumps([theirs.hex(), source.bits(64).tobytes().hex()]))
"""


def words_of(text):
    return np.frombuffer(bytes.fromhex(text), dtype=np.uint64)


@needs_fork
@pytest.mark.parametrize(
    "way",
    [
        "fork",
        "grandchild",
        pytest.param(
            "foreign code",
            marks=pytest.mark.skipif(
                not sys.platform.startswith("linux"), reason="only Linux wipes pages in a child"
            ),
        ),
    ],
)
def test_a_forked_child_with_the_number_of_its_parent_gets_words_of_its_own(way):
    """The same 64 words before: of two sets of 64 fresh ones, no two are equal but with 2e-16."""
    done = subprocess.run(
        [sys.executable, "-c", KERNEL_ALONE + CHILD, way],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ROOT},
        timeout=120,
        check=True,
    )
    theirs, ours = map(words_of, json.loads(done.stdout))
    assert len(theirs) == len(ours) == 64 and not np.isin(theirs, ours).any()


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_threads_of_a_forked_child_share_no_words():
    """All of them find at once that the source is their parent's."""
    source = NoiseSource()
    source.bits(10)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        gate, found = threading.Barrier(6), []

        def draw():
            gate.wait()
            found.append(source.bits(20))

        threads = [threading.Thread(target=draw) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os.write(write, np.concatenate(found).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(read, 8 * 120), dtype=np.uint64)
    os.close(read), os.close(write)
    assert len(np.unique(np.concatenate([theirs, source.bits(20)]))) == 140
