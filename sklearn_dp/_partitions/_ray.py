"""Tables on Ray: data sets, and lists of object references. A pass is a task for each part; what a
worker that dies has held Ray makes again."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .._rows.table import PassFunction, SplitFunction
from ..exceptions import PartError
from ._sources import CheckedSource, Columns, EngineInput, check_list, columns_of, quietly
from ._steps import (
    FAN_IN,
    ClusterEngine,
    Given,
    Message,
    Split,
    Step,
    asked,
    columns_or_words,
    name_of,
    of_source,
    pieces_of,
    run,
    total,
)

_on_ray = partial(asked, "Ray", "an instance that has been shut down")


class RayEngine(ClusterEngine):
    """Parts held by Ray; see :class:`sklearn_dp._rows.table.Engine`. A piece is a tuple of
    references: of rows, groups and weights, as far as there are any."""

    def __init__(self, columns: Columns, pieces: Sequence[tuple], places: tuple = ()) -> None:
        self.n_parts, self._pieces = len(pieces), pieces
        self._given = pieces  # also of an engine of new parts
        others = [None if place is None else Given(place) for place in places]
        self._steps: list[Any] = [
            Step(i, CheckedSource(i, columns, Given(), *others)) for i in range(len(pieces))
        ]

    def _asked(self, call: Callable[[], Any]) -> Any:
        return _on_ray(call, self._failed)

    def update(self, function: PassFunction, *broadcast: Any) -> None:
        """Give every part its new state; the workers begin at once."""
        made = self._asked(lambda: self._next(_run, function, broadcast))
        self._steps = [step for step, _ in made]

    def _total(self, function: PassFunction, broadcast: tuple) -> Any:
        import ray

        made = self._next(_run, function, broadcast)
        self._steps = [step for step, _ in made]
        add = ray.remote(_total).options(name=f"dp-{name_of(function, broadcast)}-total")
        sums = [one for _, one in made]
        while len(sums) > 1:
            sums = [add.remote(*sums[i : i + FAN_IN]) for i in range(0, len(sums), FAN_IN)]
        return ray.get(sums[0])

    def _results(self, tasks: list[Any], name: str) -> list:
        import ray

        return ray.get(tasks)

    def _hold_no_rows(self) -> None:
        self._pieces = [()] * self.n_parts

    def _brought(
        self, task: Callable, split: SplitFunction, use: Callable, n_tasks: int, broadcast: tuple
    ) -> list[Any]:
        """References of what tasks make of their pieces of all parts."""
        import ray

        parts = self._next(_pieces_of, Split(split, n_tasks), broadcast, n_tasks)
        parts = [part if n_tasks > 1 else [part] for part in parts]
        remote = ray.remote(_of_pieces).options(name=f"dp-{name_of(use, broadcast)}")
        message = ray.put(Message(use, broadcast))
        return [
            remote.remote(task, number, message, *(part[number] for part in parts))
            for number in range(n_tasks)
        ]

    def _next(
        self, step: Callable, function: Callable, broadcast: tuple, n_returns: int = 1
    ) -> list[Any]:
        """The references that a task for each part returns."""
        import ray

        if not ray.is_initialized():  # it would start another one
            raise RuntimeError("Ray has been shut down")
        task = ray.remote(step).options(
            name=f"dp-{name_of(function, broadcast)}", num_returns=2 if step is _run else n_returns
        )
        message = ray.put(Message(function, broadcast))
        pairs = zip(self._steps, self._pieces, strict=True)
        return [task.remote(state, message, *pieces) for state, pieces in pairs]

    def _failed(self) -> int | None:
        """The first part that could not be made; only that it could leaves its worker."""
        import ray

        if not ray.is_initialized():
            return None
        look = ray.remote(_nothing)
        for number, pieces in enumerate(self._given):
            try:
                ray.get(look.remote(*pieces))
            except Exception:
                return number
        return None


def _run(before: Step, message: Message, *pieces: Any) -> tuple[Step, Any]:
    """A step, and its sums by themselves, so that the state need not travel with them."""
    step = run(before, message, *pieces)
    return step, step.sums


def _pieces_of(before: Step, message: Message, *pieces: Any) -> Any:
    """A piece for each task: of one return, Ray makes a reference of the whole, so no list."""
    read = pieces_of(before, message, *pieces)
    return read if len(read) > 1 else read[0]


def _of_pieces(task: Callable, number: int, message: Message, *pieces: Any) -> Any:
    return task(number, message, pieces)


def _total(*sums: Any) -> Any:
    return total(sums)


def _nothing(*pieces: Any) -> None:
    return None


# -- collections -----------------------------------------------------------------------------------


def from_dataset(X: Any, groups: Any = None, sample_weight: Any = None) -> EngineInput:
    """A table from a data set of Ray, without groups and weights: rows have no common order."""
    for name, values in (("groups", groups), ("sample_weight", sample_weight)):
        if values is not None:
            raise TypeError(f"{name} cannot be combined with a Ray data set: give references.")
    schema = _on_ray(X.schema)
    if schema is None:
        raise ValueError("X: Found array with 0 sample(s) while a minimum of 1 is required.")
    shape = getattr(schema.types[0], "shape", None) if len(schema.names) == 1 else None
    if shape:  # an array for each row
        kind = np.dtype(schema.types[0].storage_type.value_type.to_pandas_dtype())
        columns = quietly(lambda: columns_of(np.empty((0, *shape), dtype=kind)))
        return _input(columns, lambda: X.to_numpy_refs(column=schema.names[0]))
    columns = quietly(lambda: columns_of(_empty(schema.base_schema)))
    return _input(columns, X.to_arrow_refs)


def _empty(schema: Any) -> Any:
    """A table without rows, by the schema of pyarrow, or of blocks of pandas."""
    if hasattr(schema, "empty_table"):
        return schema.empty_table()
    import pandas

    columns = {
        name: pandas.Series(dtype=kind)
        for name, kind in zip(schema.names, schema.types, strict=True)
    }
    return pandas.DataFrame(columns)


def from_references(X: Sequence[Any], groups: Any = None, sample_weight: Any = None) -> EngineInput:
    """A table from references of its parts; a worker looks at the columns of the first."""
    import ray

    for name, values in (("groups", groups), ("sample_weight", sample_weight)):
        check_list(values, name, len(X), lambda one: isinstance(one, ray.ObjectRef), "a reference")
    task = ray.remote(columns_or_words).options(name="dp-columns")
    columns = _on_ray(lambda: ray.get(task.remote(X[0])))
    if isinstance(columns, str):
        raise PartError(columns)
    return _input(columns, lambda: list(X), groups, sample_weight)


def _input(
    columns: Columns, parts: Callable[[], Any], groups: Any = None, sample_weight: Any = None
) -> EngineInput:
    others = [values for values in (groups, sample_weight) if values is not None]
    places = (None if groups is None else 1, None if sample_weight is None else len(others))

    def pieces() -> list[tuple]:
        return list(zip(_on_ray(parts), *others, strict=True))

    def rowwise(function: Callable, example: np.ndarray) -> list[Any]:
        return RayEngine(columns, pieces()).collect_rows(of_source, function)

    return EngineInput("ray", columns, lambda n_jobs: RayEngine(columns, pieces(), places), rowwise)
