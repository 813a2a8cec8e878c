"""What disjoint parts of the units cost."""

from sklearn_dp._privacy._parallel_composition import maximum_cost


def test_the_most_expensive_chain_counts():
    charges = [((), 1), (("a",), 2), (("a", "b"), 4), (("a", "c"), 3), (("d",), 5)]
    assert maximum_cost(charges) == 7 and maximum_cost([]) == 0
    assert maximum_cost([(("ab",), 1), (("a",), 2)]) == 2  # labels, not letters
