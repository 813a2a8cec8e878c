"""The estimators of the package that users see."""

from sklearn_dp.audit import all_estimators


def test_the_public_estimators_are_found():
    found = all_estimators()
    names = [name for name, _ in found]
    assert names == sorted(names) and {"DPKMeans", "DPKTupleKMeans", "FriendlyMean"} <= set(names)
    assert all(not name.startswith(("Base", "_")) and cls.__name__ == name for name, cls in found)
