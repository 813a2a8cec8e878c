"""Shared by the other rooms: bounds, columns, quantiles, centering, weighted k-means, advice."""
