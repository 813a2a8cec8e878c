"""Which seeded fits have changed a bit: this checkout beside another one.

    python tests/bits.py --before FOLDER [WORD ...]  # only fits whose names hold one of the words
    python tests/bits.py --store FILE                # digests of this checkout ...
    python tests/bits.py --compare FILE [WORD ...]   # ... and of this one later

A fit is one of a setting of `configurations`, or of `more` below. All that it shows and all that
its report says of releases goes into its digest. So a change of structure keeps every digest, and
one on purpose is told by name. Seeds repeat numbers on one machine only: no digest is kept here.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import warnings
from itertools import product
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402
from configurations import DEFAULT, ESTIMATORS, TABLE  # noqa: E402
from scipy.sparse import csr_array  # noqa: E402
from sklearn.base import clone  # noqa: E402

from sklearn_dp.model_selection import DPGridSearch  # noqa: E402

HERE = Path(__file__).resolve()
CENTERS = np.random.default_rng(7).uniform(-3, 3, size=(4, 24))


def blobs(n, d, seed=0):
    """Clusters of unequal sizes, and a few rows far out."""
    rng = np.random.default_rng([n, d, seed])
    labels = np.minimum(rng.geometric(0.4, size=n) - 1, 3)
    X = CENTERS[labels, :d] + 0.2 * rng.normal(size=(n, d))
    X[rng.random(n) < 0.01] *= 4
    return X


def settings():
    """Names, estimators, arguments of `fit`, and how the rows come."""
    for name in ESTIMATORS:
        for number, (options, _) in enumerate(TABLE.get(name, DEFAULT)):
            rows = blobs(1300 if "Tuple" in name else 400, 2)
            if "by" in options:
                rows[:, 0] = np.arange(len(rows)) % 2
            yield f"{name} {number}", ESTIMATORS[name](**options), {"X": rows}, ""
    yield from more()


def more():
    """What k-means and its relations do with weights, groups, parts, days and kinds of rows."""
    bounds = {"none": None, "ball": 20.0, "box": None, "sides": None}
    n = 3000
    rng = np.random.default_rng(1)
    extra = {
        "weights": {"sample_weight": rng.uniform(0, 3, n)},
        "groups": {"groups": rng.integers(0, n // 2, n)},
    }
    extra["both"] = {**extra["weights"], **extra["groups"]}
    for d, (kind, bound) in product((2, 3, 6, 24), bounds.items()):
        if kind in ("box", "sides"):
            sides = 15.0 * (10.0 if kind == "sides" else 1.0) ** np.linspace(0, 2, d)
            bound = (-sides, sides)
        X = blobs(n, d) * (1 if kind != "sides" else sides / 15)
        km = ESTIMATORS["DPKMeans"](4, epsilon=3.0, bounds=bound, max_weight=2.5)
        yield f"k-means {d} {kind}", km, {"X": X}, ""
        for how, arguments in extra.items():
            yield f"k-means {d} {kind} {how}", km, {"X": X, **arguments}, ""
            yield f"k-means {d} {kind} {how} parts", km, {"X": X, **arguments}, "parts"
        for how in ("float32", "sparse", "threads"):
            yield f"k-means {d} {kind} {how}", km, {"X": X}, how
        for name, options in {
            "auto": {"n_clusters": "auto"},
            "bic": {"n_clusters": (2, 6), "criterion": "bic"},
            "silhouette": {"n_clusters": (2, 6), "criterion": "silhouette"},
            "init": {"init": CENTERS[:, :d]},
            "one": {"n_clusters": 1},
            "many": {"n_clusters": 20, "epsilon": 20.0},
            "little": {"epsilon": 0.05},
        }.items():
            yield f"k-means {d} {kind} {name}", clone(km).set_params(**options), {"X": X}, ""
        if bound is not None:
            yield f"k-means {d} {kind} days", km, {"X": X}, "days"
            yield f"k-means {d} {kind} score", km, {"X": X}, "score"
        coreset = ESTIMATORS["DPCoreset"](epsilon=3.0, bounds=bound)
        yield f"coreset {d} {kind}", coreset, {"X": X}, ""
        yield f"coreset {d} {kind} groups parts", coreset, {"X": X, **extra["groups"]}, "parts"
        tuples = ESTIMATORS["DPKTupleKMeans"](4, epsilon=20.0, bounds=bound, max_weight=2.5)
        yield f"tuples {d} {kind}", tuples, {"X": X}, ""
        yield f"tuples {d} {kind} both", tuples, {"X": X, **extra["both"]}, ""
        yield f"tuples {d} {kind} lost", clone(tuples).set_params(epsilon=0.3), {"X": X}, ""
        pca = ESTIMATORS["DPPCA"](epsilon=5.0, bounds=bound)
        yield f"components {d} {kind} both", pca, {"X": X, **extra["groups"]}, ""
        for form in ("full", "spherical") if d < 10 else ("diag",):
            mixed = ESTIMATORS["DPGaussianMixture"](
                3, covariance_type=form, epsilon=9.0, bounds=bound
            )
            yield f"mixture {d} {kind} {form}", mixed, {"X": X, **extra["groups"]}, ""
    cosine = ESTIMATORS["DPKMeans"](4, epsilon=3.0, metric="cosine")
    many = ESTIMATORS["DPKMeans"](30, epsilon=50.0, bounds=30.0)
    wide = np.repeat(blobs(4 * n, 24), 5, axis=1) * np.linspace(0.2, 2.0, 120)
    for how in ("", "sparse", "parts", "float32"):
        yield f"k-means cosine {how}", cosine, {"X": blobs(n, 24)}, how
        yield f"k-means projected {how}", many, {"X": wide}, how
    for name in ("DPQuantiles", "DPRobustScaler", "DPStandardScaler", "FriendlyMean"):
        model = ESTIMATORS[name](epsilon=3.0, bounds=20.0)
        for how in ("", "parts", "float32"):
            yield f"{name} {how}", model, {"X": blobs(n, 6)}, how
            yield f"{name} groups {how}", model, {"X": blobs(n, 6), **extra["groups"]}, how

    radius = ("exponential", "binary_search", "above_threshold", "rec_concave")
    centers = (2, "grid"), (12, "grid"), (12, "pca"), (2, "paper")
    for (d, center), method in product(centers, radius):
        options = {"radius_method": method, "center_method": center, "bounds": 20.0}
        for name, own, how in (
            ("", {"n_points": 0.3}, ""),
            ("sample parts", {"n_points": 400, "sample_size": 300, "n_init": 2}, "parts"),
            ("linear", {"n_points": 0.3, "radius_grid": "linear", "bounds": None}, ""),
        ):
            ball = ESTIMATORS["DPOneCluster"](epsilon=80.0, **{**options, **own})
            yield f"ball {d} {center} {method} {name}", ball, {"X": blobs(n, d)}, how
        balls = ESTIMATORS["DPOneClusterKMeans"](2, epsilon=200.0, **options)
        yield f"balls {d} {center} {method}", balls, {"X": blobs(n, d), **extra["groups"]}, ""
    for scoring in ("silhouette", "cost"):
        km = ESTIMATORS["DPKMeans"](bounds=20.0)
        search = DPGridSearch(km, {"n_clusters": [2, 4]}, epsilon=9.0, scoring=scoring)
        yield f"search {scoring}", search, {"X": blobs(n, 3)}, ""
        yield f"search {scoring} groups", search, {"X": blobs(n, 3), **extra["groups"]}, ""


def in_form(X, how):
    """The rows as they come."""
    if how == "float32":
        return X.astype(np.float32)
    if how == "sparse":
        return csr_array(np.where(np.abs(X) > np.quantile(np.abs(X), 0.9), X, 0.0))
    if how == "parts":
        import dask.array

        return dask.array.from_array(X, chunks=(701, X.shape[1]))
    return X


def parted(values):
    import dask.array

    return dask.array.from_array(values, chunks=701)


def digest(model, arguments, how):
    """Of a fit: all that it shows, and what its report says of releases."""
    model = clone(model).set_params(random_state=3, **({"n_jobs": 2} if how == "threads" else {}))
    X = in_form(arguments["X"], how)
    rest = {name: value for name, value in arguments.items() if name != "X"}
    if how == "parts":
        rest = {name: parted(value) for name, value in rest.items()}
    if how == "days":
        for day in range(3):
            model.partial_fit(X[day::3])
    else:
        model.fit(X, **rest)
    if how == "score":
        model.score_ = model.private_score(X, random_state=5)
    shown = {name: value for name, value in sorted(vars(model).items()) if name[-1:] == "_"}
    releases = [sorted(line.items()) for line in model.privacy_report_.releases]
    shown = {name: value for name, value in shown.items() if name[0] != "_"}
    return hashlib.sha256(repr((_plain(shown), releases)).encode()).hexdigest()[:16]


def _plain(value):
    """Values as text: every bit of numbers, and of objects what they hold."""
    if hasattr(value, "compute"):
        value = value.compute()
    if isinstance(value, np.ndarray):
        held = value.tolist() if value.dtype == object else value.tobytes().hex()
        return str(value.dtype), value.shape, held
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bool | int | float | str | None | np.generic):
        return repr(value)
    if hasattr(value, "__dict__") and not callable(value):
        return type(value).__name__, _plain(dict(sorted(vars(value).items())))
    return type(value).__name__


def digests(words):
    """Of all fits with one of the words in their names."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model, arguments, how in settings():
            if words and not any(word in name for word in words):
                continue
            try:
                found[name] = digest(model, arguments, how)
            except Exception as error:  # a setting that cannot be: the same then, or a change
                found[name] = f"{type(error).__name__}: {error}"
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="folder of another checkout")
    parser.add_argument("--store", type=Path, help="write digests into a file")
    parser.add_argument("--compare", type=Path, help="a file that --store has written")
    parser.add_argument("words", nargs="*", metavar="WORD")
    options = parser.parse_args()
    if options.before:
        path = os.pathsep.join([str(options.before.resolve()), str(HERE.parent)])
        command = [sys.executable, HERE, "--store", "/dev/stdout", *options.words]
        other = subprocess.run(
            command,
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        before = json.loads(other.stdout)
    elif options.compare:
        before = json.loads(options.compare.read_text())
    now = digests(options.words)
    if options.store:
        options.store.write_text(json.dumps(now, indent=1) + "\n")
        return
    changed = [name for name, each in now.items() if before.get(name) != each]
    print(f"{len(now) - len(changed)} of {len(now)} fits have kept their bits")
    print(*changed, sep="\n")
    raise SystemExit(bool(changed))


if __name__ == "__main__":
    main()
