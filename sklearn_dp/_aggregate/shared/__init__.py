"""What the other rooms share: bounds, columns, quantiles, centering, weighted k-means, advice."""
