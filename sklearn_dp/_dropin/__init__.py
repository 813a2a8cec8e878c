"""What ported code asks for: words and attributes of scikit-learn's classes, and conversions.

`words` and `attributes` hold one table each; `replacing` has the mixin of all estimators that take
the place of a class of scikit-learn.
"""
