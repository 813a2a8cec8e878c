"""Seeded bugs of the coding of groups: units that are merged, split, sorted or invented."""

import numpy as np

from sklearn_dp._privacy import _units as _groups

from .planting import mutant


@mutant("groups converted to an array", "check_replay_of_hard_groups", _groups, "_code_list")
def _(original):
    def code_list(values):
        array = np.asarray(values) if set(map(type, values)) == {int, float} else None
        return original(values) if array is None else np.unique(array, return_inverse=True)[1]

    return code_list


@mutant("groups told apart by their texts", "check_replay_of_hard_groups", _groups, "_code_list")
def _(original):
    return lambda values: original([str(value) for value in values])


@mutant("groups told apart by their hashes", "check_replay_of_hard_groups", _groups, "_code_list")
def _(original):
    return lambda values: original([hash(value) for value in values])


@mutant("groups sorted", "check_replay_of_hard_groups", _groups, "_code_list")
def _(original):
    def code_list(values):
        if set(map(type, values)) != {frozenset}:
            return original(values)
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return np.unique(array, return_inverse=True)[1]

    return code_list


@mutant("missing groups are units", "check_missing_groups_are_refused", _groups, "_is_missing")
def _(original):
    return lambda value: False
