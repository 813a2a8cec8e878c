"""Clusters that lose all that they hold after each pass, so that every state is made again.

The engines are those of the package. Of Dask only `persist` is taken away, of Ray and of Spark what
they need of the library is a few lines here: tasks that are run whenever somebody asks for their
results, and nothing is kept.
"""

import itertools
import sys
import types
from dataclasses import replace

import numpy as np

from sklearn_dp._partitions._dask import from_delayed
from sklearn_dp._partitions._ray import from_references
from sklearn_dp._partitions._sources import EngineInput, columns_of
from sklearn_dp._partitions._spark import SparkEngine

N_PARTS = 4


def any_order(n_rows):
    """Another one in every call."""
    return np.random.default_rng().permutation(n_rows)


def same_order(n_rows):
    return np.arange(n_rows)


def piece(values, order, number):
    """A part of a table that is in some order."""
    return np.array_split(values[order], N_PARTS)[number]


def opened(reader, parts):
    """A table of rows, groups and weights in parts, as `engine_of` has it."""
    names = ("X", "groups", "sample_weight")
    grouped, weighted = (name in parts for name in names[1:])
    return replace(reader(*map(parts.get, names)), grouped=grouped, weighted=weighted)


# -- Dask ------------------------------------------------------------------------------------------


def dask_parts(changing, **values):
    """Parts that share an order; `changing` names what is in any order."""
    import dask

    parts = {}
    for name, held in values.items():
        steady = dask.delayed(same_order)(len(held))
        order = dask.delayed(any_order, pure=False)(len(held)) if name == changing else steady
        parts[name] = [dask.delayed(piece)(held, order, i) for i in range(N_PARTS)]
    return parts


def on_dask(monkeypatch, changing, **values):
    """A table of such parts."""
    monkeypatch.setattr("dask.persist", lambda *collections: collections)
    return opened(from_delayed, dask_parts(changing, **values))


# -- Ray -------------------------------------------------------------------------------------------


class Task:
    """A task of Ray, and a reference of one of its results."""

    def __init__(self, function, arguments=(), place=None):
        self.function, self.arguments, self.place = function, arguments, place

    def options(self, num_returns=1, name=None):
        return types.SimpleNamespace(remote=lambda *given: self.submitted(num_returns, given))

    def submitted(self, n_returns, arguments):
        if n_returns == 1:
            return Task(self.function, arguments)
        return [Task(self.function, arguments, place) for place in range(n_returns)]

    def result(self, memo):
        """Computed with what else has been asked for at the same time."""
        key = (self.function, *map(id, self.arguments))
        if key not in memo:
            memo[key] = self.function(*(get(one, memo) for one in self.arguments))
        return memo[key] if self.place is None else memo[key][self.place]


def get(value, memo=None):
    memo = {} if memo is None else memo
    if isinstance(value, list):
        return [get(one, memo) for one in value]
    return value.result(memo) if isinstance(value, Task) else value


def on_ray(monkeypatch, changing, **values):
    """The same by references."""
    ray = types.SimpleNamespace(
        is_initialized=lambda: True, put=lambda value: value, get=get, remote=Task, ObjectRef=Task
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    parts = {}
    for name, held in values.items():
        order = Task(any_order if name == changing else same_order, (len(held),))
        parts[name] = [Task(piece, (held, order, i)) for i in range(N_PARTS)]
    return opened(from_references, parts)


# -- Spark -----------------------------------------------------------------------------------------


class Lines:
    """An RDD, by its lineage; what it reads stays for as long as one job runs."""

    def __init__(self, partitions, job):
        self.partitions, self.job, self.context = partitions, job, self

    def broadcast(self, value):
        return types.SimpleNamespace(value=value)

    def setJobDescription(self, words):
        pass

    def getNumPartitions(self):
        return N_PARTS

    def persist(self, level=None):
        return self

    def unpersist(self):
        pass

    def map(self, function):
        return Lines(lambda: [list(map(function, one)) for one in self.partitions()], self.job)

    def zip(self, other):
        def pairs():
            both = zip(self.partitions(), other.partitions(), strict=True)
            return [list(zip(*one, strict=True)) for one in both]

        return Lines(pairs, self.job)

    def mapPartitionsWithIndex(self, function):
        def found():
            return [list(function(i, iter(one))) for i, one in enumerate(self.partitions())]

        return Lines(found, self.job)

    def treeReduce(self, function):
        first, *others = itertools.chain(*self.partitions())
        for other in others:
            first = function(first, other)
        self.job.clear()
        return first


def on_spark(monkeypatch, changing, X):
    """The same by an RDD, which has neither groups nor weights."""
    levels = types.SimpleNamespace(MEMORY_AND_DISK=None)
    monkeypatch.setitem(sys.modules, "pyspark", types.SimpleNamespace(StorageLevel=levels))
    order, job = any_order if changing == "X" else same_order, {}

    def read():
        if "order" not in job:
            job["order"] = order(len(X))
        return [[piece(X, job["order"], i)] for i in range(N_PARTS)]

    columns = columns_of(X)
    return EngineInput(
        "spark", columns, lambda n_jobs: SparkEngine(columns, Lines(read, job)), None
    )
