"""How the site is built: `make docs`."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

import site_pages  # noqa: E402

import sklearn_dp  # noqa: E402

project = "sklearn-dp"
author = "The sklearn-dp developers"
copyright = author
version = release = sklearn_dp.__version__
language = "en"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "proof_pages",
    "site_pages",
]
templates_path = ["_templates"]
exclude_patterns = ["_ext", *(f"auto_examples/**.{ending}" for ending in ("ipynb", "py", "md5"))]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
default_role = "literal"
highlight_language = "default"

# -- Markdown -----------------------------------------------------------------------------------
myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 4

# -- the API --------------------------------------------------------------------------------------
autosummary_generate = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_validation_checks = set()  # `make lint` checks docstrings
# A reference of a docstring is told once in its text, or not at all.
suppress_warnings = ["ref.citation"]

# -- other projects -------------------------------------------------------------------------------
# The second place is made from a list of the names that pages use: a build needs no network.
inventory = HERE / "generated" / "scikit-learn.inv"
site_pages.write_inventory(inventory, HERE / "_ext" / "scikit-learn.txt", "scikit-learn")
intersphinx_mapping = {"sklearn": ("https://scikit-learn.org/stable/", (None, str(inventory)))}
intersphinx_timeout = 5
intersphinx_disabled_reftypes = ["*"]

# -- the gallery ----------------------------------------------------------------------------------
# Examples run from any folder, and each in the same process: noise is the system's in any case.
os.environ.setdefault("MPLBACKEND", "agg")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"[/\\]plot_",
    "ignore_pattern": r"(_common|run_demo)\.py",
    "within_subsection_order": "site_gallery.KMeansFirst",
    # Examples write a picture of their own; tutorials draw with pyplot.
    "image_scrapers": ("site_gallery.scrape", "matplotlib"),
    "reset_modules": ("matplotlib", "site_gallery.look"),
    "thumbnail_size": (640, 448),
    "capture_repr": ("_repr_html_",),
    "reset_argv": "site_gallery.arguments",
    "doc_module": ("sklearn_dp",),
    "reference_url": {"sklearn_dp": None},
    "backreferences_dir": "generated/backreferences",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
    "write_computation_times": False,
}

# -- the look -------------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = "sklearn-dp"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_copy_source = True
html_show_sourcelink = True
html_theme_options = {
    "logo": {"text": "sklearn-dp", "alt_text": "sklearn-dp"},
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["version"],
    "pygments_light_style": "github-light",
    "pygments_dark_style": "github-dark",
    # The gallery is wide: its pictures need the room.
    "secondary_sidebar_items": {"**": ["page-toc", "sourcelink"], "auto_examples/index": []},
}
# Pages without pages below them: an empty sidebar would take the room of the code.
html_sidebars = {"index": [], "get_started": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = False
