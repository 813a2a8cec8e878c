"""How the gallery runs an example: the quick version, with its picture in a folder of the build.

`SKLEARN_DP_GALLERY=full make docs` draws the pictures of the long version instead.
"""

import os
import tempfile
from pathlib import Path

FOLDER = Path(tempfile.gettempdir()) / f"sklearn-dp-gallery-{os.getpid()}"


# The examples that come first, most used first; the others follow by name.
FIRST = (
    "plot_private_palette",
    "plot_number_of_clusters",
    "plot_digits_pipeline",
    "plot_private_topics",
    "plot_what_epsilon_costs",
    "plot_private_coreset",
)


class KMeansFirst:
    """The order of the examples of a section: k-means first, and last what does not run."""

    def __init__(self, src_dir):
        pass

    def __call__(self, filename):
        name = Path(filename).stem
        place = FIRST.index(name) if name in FIRST else len(FIRST)
        return not name.startswith("plot_"), place, name


def picture_of(script):
    return FOLDER / f"{Path(script).stem}.png"


def arguments(gallery_conf, script_vars):
    """What `sys.argv` holds beside the name of the script."""
    quick = [] if os.environ.get("SKLEARN_DP_GALLERY") == "full" else ["--quick"]
    return ["--output", str(picture_of(script_vars["src_file"])), *quick]


def look(gallery_conf, filename):
    """The look of the package's pictures, for what an example draws with pyplot."""
    from matplotlib import cycler, rcParams

    from sklearn_dp.inspection._curve import COLORS, SETTINGS

    rcParams.update(SETTINGS)
    rcParams["axes.prop_cycle"] = cycler(color=COLORS)


def scrape(block, block_vars, gallery_conf):
    """The picture of an example, once the block that draws it has run."""
    from sphinx_gallery.scrapers import figure_rst

    drawn = picture_of(block_vars["src_file"])
    if not drawn.is_file():
        return ""
    # The gallery makes a thumbnail of the first picture, which no page shows.
    first_panel(drawn).save(next(block_vars["image_path_iterator"]))
    target = Path(next(block_vars["image_path_iterator"]))
    target.write_bytes(drawn.read_bytes())
    drawn.unlink()
    return figure_rst([str(target)], gallery_conf["src_dir"])


def first_panel(path):
    """The upper left panel of a picture: of several, a thumbnail would be too small to be read."""
    import numpy as np
    from PIL import Image

    picture = Image.open(path).convert("RGB")
    ink = np.asarray(picture).min(axis=2) < 250
    height = end_of_panel(ink.any(axis=1))
    # Titles may run across panels: their gaps are looked for below them.
    width = end_of_panel(ink[height // 3 : height].any(axis=0))
    return picture.crop((0, 0, width, height))


def end_of_panel(has_ink):
    """Where the first panel along an axis ends: in the first wide gap beyond its quarter."""
    gap = max(len(has_ink) // 150, 1)
    for place in range(len(has_ink) // 4, 3 * len(has_ink) // 4):
        if not has_ink[place : place + gap].any():
            return place + gap
    return len(has_ink)
