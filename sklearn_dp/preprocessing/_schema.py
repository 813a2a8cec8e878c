"""Public schemas of tables, from files that others write too."""

import json
import os
import re
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from ._public_encoder import PublicEncoder

_ENDS = ("minimum", "minInclusive"), ("maximum", "maxInclusive")
_CATEGORIES = ("enum", "categories")
_CHOICES = re.compile(r"[^\\^$.*+?()\[\]{}]+\|[^\\^$.*+?()\[\]{}]+")  # a pattern of texts alone


class Schema(dict[Hashable, Any]):
    """The public schema of a table: for each column its range, or a list of its categories.

    A dict that can also be read from a file. Use it wherever a schema is needed, such as in
    :func:`~sklearn_dp.profile` and :class:`PublicEncoder`.

    See Also
    --------
    PublicEncoder : What ranges and categories mean.

    Examples
    --------
    >>> import json, tempfile, pathlib
    >>> from sklearn_dp import Schema
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "persons.json"
    >>> fields = [
    ...     {"name": "age", "type": "integer", "constraints": {"minimum": 15, "maximum": 95}},
    ...     {"name": "work", "type": "string", "constraints": {"enum": ["none", "full"]}},
    ... ]
    >>> _ = path.write_text(json.dumps({"fields": fields}))
    >>> Schema.from_file(path)
    {'age': (15.0, 95.0), 'work': ['none', 'full']}
    """

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], *, columns: Iterable[Hashable] | None = None
    ) -> Self:
        """Read a schema from a JSON file.

        Parameters
        ----------
        path : str or path
            A Frictionless Table Schema (or a data package of one table), CSVW metadata of one
            table, or a plain object: for each column ``{"minimum": 15, "maximum": 95}`` or a list
            of categories. In the first two, numbers need a minimum and a maximum, and texts a list
            of categories: `enum` or `categories` in Frictionless, in CSVW a `format` such as
            "none|full".
        columns : iterable of str, optional
            The columns to use; all by default.

        Returns
        -------
        schema : Schema
            In the order of the file, or of `columns`.

        Raises
        ------
        ValueError
            If the file has no such schema: with the name of the field, and what is wrong with it.
        """
        try:
            fields = _fields(json.loads(Path(path).read_text(encoding="utf-8-sig")))
            if isinstance(columns, str):
                raise ValueError("columns must be a list of names.")
            wanted = list(fields) if columns is None else list(columns)
            schema = cls((name, _kind(name, fields)) for name in wanted)
            PublicEncoder(schema)._columns()
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from None
        return schema


def _fields(schema: Any) -> dict[Hashable, Any]:
    """The descriptions of columns by their names, in any of the formats."""
    if not isinstance(schema, Mapping):
        raise ValueError("it must be an object that describes the columns of one table.")
    for name in ("schema", "tableSchema"):
        if isinstance(schema.get(name), Mapping):
            return _fields(schema[name])
    for name in ("resources", "tables"):  # of a package, which may have one table
        if isinstance(schema.get(name), list):
            if len(schema[name]) != 1:
                raise ValueError(f"{name} must have one table.")
            return _fields(schema[name][0])
    for name in ("fields", "columns"):
        fields = schema.get(name)
        if isinstance(fields, list) and all(isinstance(each, Mapping) for each in fields):
            named = {_name(each): each for each in fields}
            if None in named or len(named) < len(fields):
                raise ValueError(f"{name} must have different names.")
            return named
    return dict(schema)


def _name(field: Mapping[str, Any]) -> Hashable:
    """The name of a column in the head of the table: in CSVW, its title."""
    title = field.get("titles", field.get("name"))
    while isinstance(title, Mapping | list) and title:  # titles by language, or several
        title = next(iter(title.values())) if isinstance(title, Mapping) else title[0]
    return title if isinstance(title, str) else None


def _kind(name: Hashable, fields: Mapping[Hashable, Any]) -> Any:
    """The range or the categories of one column."""
    if name not in fields:
        raise ValueError(f"there is no field {name!r}.")
    field = fields[name]
    if isinstance(field, list):
        if len(field) == 2 and all(type(each) in (int, float) for each in field):
            raise ValueError(
                f"field {name!r} has two numbers, which may be a range or two categories. Write an "
                'object: {"minimum": ..., "maximum": ...} or {"categories": [...]}.'
            )
        return field
    if not isinstance(field, Mapping):
        raise ValueError(
            f"field {name!r} must be a list of categories, or an object with a range or categories."
        )
    base = field.get("datatype", field.get("type"))
    facts = {**field, **(base if isinstance(base, Mapping) else {})}
    facts |= facts.get("constraints") or {}
    base = facts.get("base", base)
    for key in _CATEGORIES:
        if isinstance(facts.get(key), list):
            return [each["value"] if isinstance(each, Mapping) else each for each in facts[key]]
    if base == "boolean":
        return [True, False]
    choices = facts.get("format")
    if base == "string" and isinstance(choices, str) and _CHOICES.fullmatch(choices):
        return choices.split("|")
    try:
        low, high = (next((facts[key] for key in keys if key in facts), "") for keys in _ENDS)
        return float(low), float(high)
    except (TypeError, ValueError):
        raise ValueError(
            f"field {name!r} needs numbers as minimum and maximum, or a list of categories. Add "
            "public ones, or choose other columns."
        ) from None
