"""Differentially private clustering and aggregation for scikit-learn."""
