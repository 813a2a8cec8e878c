"""Where integer rows are: the ball and the grid that they lie in, and the origin they are about.

All of it is public or released. :class:`.rows.Rows` has such a frame and the rows of a part;
:class:`.grid_table.GridTable` has one and asks the parts for sums.
"""

import numpy as np


class GridGeometry:
    """The public geometry of integer rows: a ball on a grid, and the origin they are served about.

    `ball` bounds the norms of the rows about their first origin, `limit` those about the present
    one, in steps. `origin` (n_features,) are integers; the rows served are those read minus it.
    `unit`, the length of a step, is a power of two: what is released is stated in lengths.
    """

    def __init__(self, n_features: int, ball: float, unit: float = 1.0) -> None:
        self.n_features, self.ball, self.limit, self.unit = n_features, ball, ball, unit
        self.origin = np.zeros(n_features)

    def recenter(self, origin: np.ndarray) -> None:
        """Serve the rows about a released integer origin from now on.

        Their norms are then bounded by the ball and the length of the origin together.
        """
        self.origin = origin
        self.limit = self.ball + float(np.linalg.norm(origin))

    def inside(self, points: np.ndarray) -> np.ndarray:
        """Released points (m, n_features) as integers in the ball that the rows were clipped to.

        As `nearest` needs them; noise may have taken them anywhere. They are about the origin.
        """
        absolute = points + self.origin
        length = np.maximum(np.linalg.norm(absolute, axis=1, keepdims=True), 1e-300)
        return np.rint(absolute * np.minimum(1.0, self.ball / length)) - self.origin
