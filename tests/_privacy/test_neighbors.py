"""Units and relations are known by name."""

import pytest

from sklearn_dp._privacy._neighbors import (
    RELATIONS,
    UNITS,
    check_relation,
    check_unit,
    condition_in_words,
    in_words,
    is_part_of,
)


def test_all_names_are_accepted_and_read_as_sentences():
    for unit in UNITS:
        check_unit(unit)
        for relation in RELATIONS:
            check_relation(relation)
            assert in_words(relation, unit) == f"{relation} one {unit}"
    assert condition_in_words("add or remove", "group") == "when one group is added or removed"
    assert condition_in_words("replace", "row") == "when one row is replaced"


@pytest.mark.parametrize("value", ["person", "", None, 1, ["row"]])
def test_other_names_are_refused(value):
    with pytest.raises(ValueError, match="unit must be one of 'row', 'group'"):
        check_unit(value)
    with pytest.raises(ValueError, match="relation must be one of"):
        check_relation(value)


def test_a_part_covers_what_the_whole_does():
    """Every fit of a table covers adding and removing; what else it covers, it says."""
    for relation in RELATIONS:
        assert is_part_of(relation, relation) and is_part_of(relation, "add or remove")
    for whole in RELATIONS[1:]:
        assert [part for part in RELATIONS if is_part_of(part, whole)] == [whole]
