"""
A private color palette of a photograph
=======================================

A classic use of k-means is color quantization: finding a few colors that can reproduce a picture.
Each of the 273,280 pixels is a row of three numbers, and the cluster centers are the palette.

Suppose that each row belongs to a person, and that the palette is to be published. Plain
:class:`~sklearn.cluster.KMeans` has no guarantee for these people. :class:`~sklearn_dp.DPKMeans`
has: whether or not any one pixel is in the picture, the probability of any palette changes by a
factor of at most e^epsilon (except for a probability of delta). `bounds=(0, 255)` is public
knowledge about pixels; nothing else is assumed.

The palettes differ from run to run because the noise comes from the operating system and cannot be
reproduced. That is intended. Their quality changes little: compare the costs (sums of squared
distances to the nearest palette color) below.

The repainted pictures and the costs are computed from every pixel, so they are not private. Only
the owner of the data may see such results. They are printed here because this photograph is public.
"""

import numpy as np
from _common import INK, MUTED, parse_arguments, print_table, save, timed
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_image
from sklearn.metrics import adjusted_rand_score

from sklearn_dp import DPKMeans, DPKTupleKMeans

N_COLORS = 8
EPSILON = 1.0
PHOTO = "flower.jpg"


def cost(model, pixels):
    return -model.score(pixels)


# %%
# The three estimators. Only the constructor changes; the rest of the code is the same for all of
# them. `KMeans` gets ten starts, to be a strong competitor.


def estimators():
    budget = {"epsilon": EPSILON, "bounds": (0, 255)}
    return {
        "KMeans": KMeans(N_COLORS, n_init=10, random_state=0),
        "KMeans, one start": KMeans(N_COLORS, n_init=1, random_state=1),
        "DPKMeans": DPKMeans(N_COLORS, **budget),
        "DPKTupleKMeans": DPKTupleKMeans(N_COLORS, **budget),
    }


def fit_all(pixels):
    """Each model, with the time of its fit."""
    fitted = {}
    for name, model in estimators().items():
        print(f"  fitting {name} ...", flush=True)
        fitted[name] = timed(model.fit, pixels)
    return fitted


# %%
# How good are the private palettes? `KMeans` with a single start provides a scale: two runs
# *without* privacy disagree this much.


def print_comparison(fitted, pixels):
    reference, reference_time = fitted["KMeans"]
    rows = []
    for name, (model, time) in fitted.items():
        agreement = adjusted_rand_score(reference.labels_, model.labels_)
        rows.append([
            name,
            f"{EPSILON:g}" if hasattr(model, "privacy_report_") else "none",
            f"{cost(model, pixels) / cost(reference, pixels):.4f}",
            f"{agreement:.3f}",
            f"{time.cpu:.2f}",
            f"{time.wall:.2f}",
            f"{time.cpu / reference_time.cpu:.2f}",
        ])  # fmt: skip
    print()
    headings = "estimator,epsilon,cost / KMeans,ARI to KMeans,CPU s,wall s,CPU / KMeans"
    print_table(headings.split(","), rows)


def print_reports(fitted):
    print("\nPrivacy report of DPKMeans\n")
    print(fitted["DPKMeans"][0].privacy_report_)
    model = fitted["DPKTupleKMeans"][0]
    print(f"\nDPKTupleKMeans took the path '{model.path_}' with {model.n_tuples_} blocks: its")
    print(str(model.privacy_report_).splitlines()[0])
    if not model.n_tuples_:
        print(
            "(By a public rule, the budget is too small for blocks, so the private coreset, as in "
            "DPKMeans, gets the whole budget.)"
        )


# %%
# The picture: the photograph, repainted with each palette.

LUMA = np.array([0.299, 0.587, 0.114])


def palette(model):
    """Colors from dark to light, and each one's share of the picture."""
    colors = np.clip(model.cluster_centers_, 0, 255) / 255
    weights = getattr(model, "cluster_weights_", None)  # released, with noise
    if weights is None:
        weights = np.bincount(model.labels_, minlength=len(colors))
    order = np.argsort(colors @ LUMA)
    return colors[order], weights[order] / weights.sum()


def painted(model, shape):
    """Every pixel in its palette color."""
    colors = np.clip(model.cluster_centers_, 0, 255).round().astype(np.uint8)
    return colors[model.labels_].reshape(shape)


def draw_picture(axes, picture, title, subtitle):
    axes.imshow(picture, aspect="auto")
    axes.set_axis_off()
    axes.set_title(title, fontsize=14, pad=23)
    axes.text(0, 1.03, subtitle, transform=axes.transAxes, color=MUTED)


def draw_palette(axes, model):
    colors, shares = palette(model)
    for i, (color, share) in enumerate(zip(colors, shares, strict=True)):
        axes.bar(i, 1, width=0.96, color=color)
        label_color = "white" if color @ LUMA < 0.55 else INK
        axes.text(i, 0.47, f"{share:.0%}", ha="center", va="center", color=label_color)
        code = "".join(f"{round(255 * part):02x}" for part in color)
        axes.text(i, -0.14, f"#{code}", ha="center", va="top", fontsize=7.5, color=MUTED)
    axes.set(xlim=(-0.48, len(colors) - 0.52), ylim=(0, 1))
    axes.set_axis_off()


def draw_all_colors(axes, pixels):
    """A sample of the photograph's colors from dark to light, in place of a palette."""
    sample = np.random.default_rng(0).choice(pixels, 640)
    axes.imshow(sample[np.argsort(sample @ LUMA)][None], aspect="auto", interpolation="bilinear")
    axes.set_axis_off()


def captions(fitted, pixels):
    reference, time = fitted["KMeans"]
    found = {"KMeans": f"no privacy  ·  best of 10 starts  ·  {time.cpu:.1f} s CPU"}
    for name in ("DPKMeans", "DPKTupleKMeans"):
        model, time = fitted[name]
        ratio = cost(model, pixels) / cost(reference, pixels)
        found[name] = (
            f"ε = {EPSILON:g}, δ = 10$^{{-6}}$  ·  cost × {ratio:.4f}  ·  {time.cpu:.1f} s CPU"
        )
    found["DPKTupleKMeans"] += f"  ·  by {fitted['DPKTupleKMeans'][0].path_}"
    return found


def cells(figure):
    """A 2 x 2 grid: each cell has a picture in its true proportions and a strip below it."""
    width, height = figure.get_size_inches()
    for top in (0.62, 4.92):
        for left in (0.2, 5.15):
            yield [
                figure.add_axes([left / width, 1 - (y + h) / height, 4.65 / width, h / height])
                for y, h in ((top, 3.1), (top + 3.16, 0.34))
            ]


def draw(figure, photo, fitted):
    pixels = photo.reshape(-1, 3)
    n_colors = len(np.unique(pixels, axis=0))
    (picture, strip), *others = cells(figure)
    draw_picture(picture, photo, "Photograph", f"{len(pixels):,} pixels  ·  {n_colors:,} colors")
    draw_all_colors(strip, pixels)
    texts = captions(fitted, pixels)
    for (picture, strip), (name, text) in zip(others, texts.items(), strict=True):
        model = fitted[name][0]
        draw_picture(picture, painted(model, photo.shape), name, text)
        draw_palette(strip, model)


def main(argv=None):
    arguments = parse_arguments(__doc__, "private_palette.png", argv)
    photo = load_sample_image(PHOTO)
    if arguments.quick:
        photo = photo[::6, ::6]
    pixels = photo.reshape(-1, 3).astype(float)
    print(f"{N_COLORS} colors for the {len(pixels):,} pixels of {PHOTO}")
    fitted = fit_all(pixels)
    print_comparison(fitted, pixels)
    print_reports(fitted)
    save(lambda figure: draw(figure, photo, fitted), arguments.output, (10, 8.7), dpi=100)


if __name__ == "__main__":
    main()
