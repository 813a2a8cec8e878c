"""What a distance between a row and a center is: Euclidean, or of their directions.

Of directions x and c, rows and centers of length 1, |x - c|^2 / 2 = 1 - x.c: half of the squared
distance is the cosine distance. So k-means of directions is spherical k-means but for one thing:
centers are means, and their lengths decide a little about which one is nearest, until they are
scaled to length 1 and released. A row of zeros has no direction. It stays at the origin, at the
distance 1/2 from every center.
"""

from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer

from .._privacy._checks import check_choice
from .._privacy._domain import Domain, Sphere, unit_rows
from .._rows.nearest import UnitRows
from .._rows.quantized import without_zeros
from .._rows.single_rows import distances
from .._rows.sparse_rows import SparseRows
from .._sklearn_compat import kmeans_of

__all__ = ["Euclidean", "metric_of"]


class Euclidean:
    """Rows as they are; a sum of costs is one of squared distances."""

    cost = 1.0  # of a squared distance
    largest: float | None = None  # longer distances count as this in a private score; None: radius_

    def domain(self, n_features: int) -> Domain | None:
        """What all rows are moved to before anything else."""
        return None

    def rows(self, X: Any) -> Any:
        """Valid rows as they are compared with centers."""
        return X

    def centers(self, means: np.ndarray) -> np.ndarray:
        """Centers of clusters with these means."""
        return means

    def distances(self, X: np.ndarray, centers: np.ndarray) -> np.ndarray:
        """Distances (n, k) of such rows to released centers, each a function of its row alone."""
        return distances(X, centers)

    def length(self, distance: float) -> float:
        """The Euclidean length that a distance is of."""
        return distance

    def to_sklearn(self, centers: np.ndarray, released: dict[str, Any]) -> KMeans | Pipeline:
        """Released centers as a model of scikit-learn."""
        return kmeans_of(centers, **released)


class Cosine(Euclidean):
    """Directions of rows; a cost is the cosine distance, 1 - cosine."""

    cost = 0.5
    largest = 1.0

    def domain(self, n_features: int) -> Domain:
        """The unit sphere."""
        return Sphere.of(n_features)

    def rows(self, X: Any) -> Any:
        """Directions of rows; sparse ones stay sparse."""
        if not isinstance(X, SparseRows) or not X.width:
            return UnitRows(X)
        table = X.entries(slice(0, len(X)))
        table.data = without_zeros(table, unit_rows).astype(X.dtype)
        return SparseRows(table)

    def centers(self, means: np.ndarray) -> np.ndarray:
        """Directions of means."""
        return unit_rows(means)

    def distances(self, X: np.ndarray, centers: np.ndarray) -> np.ndarray:
        """Cosine distances, which lose no digits where they are small."""
        return self.cost * np.square(distances(X, centers))

    def length(self, distance: float) -> float:
        """That of the difference of two directions."""
        return float(np.sqrt(distance / self.cost))

    def to_sklearn(self, centers: np.ndarray, released: dict[str, Any]) -> Pipeline:
        """K-means of normalized rows, whose inertia is that of squared distances."""
        columns = {name: released[name] for name in released if name.endswith("_in_")}
        released = {**released, "inertia_": released["inertia_"] / self.cost}
        released.pop("feature_names_in_", None)  # normalized rows are an array
        normalizer = Normalizer()
        vars(normalizer).update(columns)
        return make_pipeline(normalizer, kmeans_of(centers, **released))


_METRICS: dict[str, Euclidean] = {"euclidean": Euclidean(), "cosine": Cosine()}


def metric_of(name: Any) -> Euclidean:
    """The metric that a user asks for by its name."""
    check_choice("metric", name, tuple(_METRICS))
    return _METRICS[name]
