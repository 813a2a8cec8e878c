"""Random questions of mixtures: of columns, and of whitened rows; and planted bugs in these."""

from dataclasses import replace

import numpy as np
from query_ground import Ground, edges, features
from query_tools import Case

from sklearn_dp._queries import whitened
from sklearn_dp._queries import whitened as labels


def distances_and_values(rng):
    d, bins = features(rng), np.concatenate([[-9.0], np.sort(rng.normal(size=5)), [9.0]])
    scale = 10.0 ** rng.uniform(-1, 1, size=d)
    return Case(whitened.DistancesAndValues(rng.normal(size=d), scale, bins, 8), d)


def _components(rng, ground):
    """Some of them narrow: nearly all rows are beyond any clip."""
    found = []
    for center in ground.points(rng, int(rng.integers(1, 4))):
        axes = np.linalg.qr(rng.normal(size=(ground.n_features,) * 2))[0]
        scales = ground.ball * 10.0 ** rng.uniform(-3, 0, ground.n_features)
        found.append(whitened.Whitening(center, axes, scales, rng.uniform(1, 50)))
    return tuple(found)


def whitened_moments(rng):
    """By labels, by weights that have been held, or by those that are found."""
    ground = Ground.draw(rng)
    components, radii = _components(rng, ground), tuple(rng.choice([0.5, 2.0, 3.0], 2).tolist())
    centers = np.array([each.center for each in components])
    labeled = labels.NearestLabels(centers)
    held = whitened.WhitenedDistances(components, edges(rng, 9.0))
    before = [(), (labeled,), (held,)][int(rng.integers(3))]
    form = str(rng.choice(["full", "tied", "diag", "spherical"]))
    query = whitened.WhitenedMoments(
        components, radii, form, before == (labeled,), bool(rng.random() < 0.5)
    )
    return ground.case(query, *before)


def whitened_distances(rng):
    ground = Ground.draw(rng)
    query = whitened.WhitenedDistances(_components(rng, ground), edges(rng, 9.0))
    return ground.case(query)


def whitened_after_the_clip(original):
    """Whitened rows may then have any length."""

    def clipped(component, products, radii):
        wide = replace(component, scales=3 * component.scales)
        return [3 * each for each in original(wide, products, radii)]

    return clipped


def twice_off_the_diagonal(original):
    def moments(x, form):
        found, rows = original(x, form), np.triu_indices(x.shape[1])
        return found * np.where(rows[0] == rows[1], 1, 2) if len(found) == len(rows[0]) else found

    return moments


def weight_of_two(original):
    def weights(*given):
        found = original(*given)
        found[:1] *= 2
        return found

    return weights


def weights_by_the_first_row(original):
    def weights(n, squares, components):
        return original(
            n, [square + square[:1].sum() * j for j, square in enumerate(squares)], components
        )

    return weights


OF_WHITENED = {
    "the clip skipped (whitened)": (
        whitened, "clip_integer_columns", lambda _: lambda rows, *_: rows,
        whitened.WhitenedMoments,
    ),
    "clipped before it is whitened": (
        whitened, "_clipped", whitened_after_the_clip, whitened.WhitenedMoments,
    ),
    "entries off the diagonal twice": (
        whitened, "_moments_of", twice_off_the_diagonal, whitened.WhitenedMoments,
    ),
    "a row of weight two": (
        whitened, "component_weights", weight_of_two, whitened.WhitenedMoments,
    ),
    "a row of weight two (distances)": (
        whitened, "component_weights", weight_of_two, whitened.WhitenedDistances,
    ),
    "weights of components above one": (
        whitened, "component_weights",
        lambda f: lambda *a: np.minimum(f(*a) + 2**19, 2**20).astype(np.int32),
        whitened.WhitenedDistances,
    ),
    "weights by the first row": (
        whitened, "component_weights", weights_by_the_first_row, whitened.WhitenedDistances,
    ),
    "weights that are held of other rows": (
        whitened.WhitenedDistances, "on",
        lambda f: lambda self, part: (
            lambda found: (
                found[0].having(**{
                    whitened.WEIGHTS: np.roll(found[0].state[whitened.WEIGHTS], 1, axis=0)
                }) if whitened.WEIGHTS in found[0].state else found[0],
                found[1],
            )
        )(f(self, part)),
        whitened.WhitenedMoments,
    ),
    "the clip of fourth powers skipped": (
        whitened, "_fourth_powers",
        lambda f: lambda x, of, radius, weight: 81 * f(x, of, 3 * radius, weight),
        whitened.WhitenedMoments,
    ),
    "fourth powers for nothing": (
        whitened.WhitenedMoments, "claims",
        lambda f: lambda self, facts: tuple(
            replace(each, l2=each.l2 * (1 - whitened.FOURTHS)) for each in f(self, facts)
        ),
        whitened.WhitenedMoments,
    ),
}  # fmt: skip
