"""The proof pages: one for each estimator, from `doc/proofs/releases.toml` and the plans.

Each page follows a plan: which releases an estimator can make, and of each the statement, the
sensitivity with its proof, the law, the share of the budget and the tests, whose source has pages
of its own.
"""

import itertools
import re
import tomllib
from pathlib import Path

PROOFS = Path(__file__).resolve().parents[1] / "proofs"
COSTS = {
    "gaussian": "rho = s² / (2 sigma²) for sensitivity s: exactly mu-GDP with mu = s / sigma",
    "laplace": "rho = epsilon + exp(-epsilon) - 1 for epsilon = s / scale, with s in l1",
    "exponential": "rho = epsilon² / 8 (bounded range)",
    "above threshold": "rho = epsilon tanh(epsilon / 2), as any epsilon-DP mechanism",
    "stability histogram": "rho of its noise, and delta for a box that only one neighbor has",
    "friendly core": "rho of the noise of its scores, and delta for an element without friends",
    "friendly average": "rho of its noise; delta for a size that is too large",
    "proportional noise": "rho of Gaussians whose covariance moves, and delta for their tails",
    "RecConcave": "rho of its choices and leads; delta for leads where neighbors differ",
    "several mechanisms": "rho and delta of all the fits",
    "approximate DP": "(epsilon, delta) as a whole, not divided further",
}

GAUSSIAN = """Every release of this estimator is Gaussian. The composition theorem for Gaussian
differential privacy (Dong, Roth and Su, *Gaussian differential privacy*, 2022) adds them up
exactly: the fit is mu-GDP with mu² = 2 rho, where rho is the sum of the rhos in its plan. Epsilon
and delta follow from the [exact curve of mu-GDP](../../privacy_model.md#accounting)."""
MIXED = """A plan whose releases are all Gaussian is added up exactly by the composition theorem for
Gaussian differential privacy (Dong, Roth and Su, *Gaussian differential privacy*, 2022): it is
mu-GDP with mu² = 2 rho. Any other plan is added up by the composition theorem of zCDP (Bun and
Steinke, *Concentrated differential privacy*, 2016): the rhos add up, and so do the deltas of
failure events. The total is then [converted to epsilon and
delta](../../privacy_model.md#accounting)."""

APPROXIMATE = """
A step of approximate DP that is the only entry of its plan is the total, by the theorem in its
proof. Next to other entries it is first expressed in zCDP."""


def releases(path=PROOFS / "releases.toml"):
    """All releases, each with its list of (estimator, pattern)."""
    found = tomllib.loads(path.read_text(encoding="utf-8"))["release"]
    return [{**each, "in": [tuple(place.split(": ")) for place in each["in"]]} for each in found]


def general(name):
    """A plan entry with # for each number.

    >>> general("partition/level 2/ball/box")
    'partition/level #/ball/box'
    """
    return re.sub(r"\d+", "#", name)


def release_of(estimator, entry, law, table):
    """The release that a plan entry is about; an error unless there is exactly one."""
    place = (estimator, general(entry))
    (found,) = [each for each in table if place in each["in"] and each["law"] == law]
    return found


def page_of(test_file):
    """The page with the source of a file of tests, from the folder of the proofs, without ending.

    >>> page_of("tests/audit/test_noise.py")
    'tests/audit-test_noise'
    """
    return "tests/" + test_file.removeprefix("tests/").removesuffix(".py").replace("/", "-")


def link(test):
    """A link from the page of an estimator to the source of a test."""
    path, name = test.split("::")
    return f"[`{test}`](../{page_of(path)}.md#{name})"


def test_page(path, names):
    """The source of the tests of one file that proofs name."""
    sections = "\n".join(
        f"## {name}\n\n```{{literalinclude}} ../../../{path}\n:pyobject: {name}\n```\n"
        for name in names
    )
    head = f"---\norphan: true\n---\n\n# {path}\n\n"
    return f"{head}The tests of this file that proofs name.\n\n{sections}"


def section(release, names):
    tests = "\n".join(f"* {link(test)}" for test in release["tests"])
    entries = ", ".join(f"`{name}`" for name in names)
    return f"""## {release["title"]}

Plan: {entries}

{release["statement"]}

:Sensitivity: {release["proof"]}
:Law and cost: {release["law"]}; {COSTS[release["law"]]}.
:Post-processing: {release["then"]}
:Code: `{release["code"]}`

Tests:

{tests}
"""


def page(estimator, table):
    mine = [(each, [name for who, name in each["in"] if who == estimator]) for each in table]
    mine = [(each, names) for each, names in mine if names]
    n_entries = len({name for _, names in mine for name in names})
    sections = "\n".join(section(each, names) for each, names in mine)
    laws = {each["law"] for each, _ in mine}
    total = GAUSSIAN if laws == {"gaussian"} else MIXED
    total += APPROXIMATE if "approximate DP" in laws else ""
    return f"""# {estimator}

A plan of `{estimator}` can hold {n_entries} entries, which are {len(mine)} kinds of releases.
The parameters determine which of them a particular fit makes:
`{estimator}(...).privacy_plan(n_features=...)` lists them with their shares.
What holds for all of them is [explained once](../index.md). `#` stands for a number.

{sections}
## The total

{total}
"""


def pages(table):
    """The text of all pages, by their names in the folder of the proofs."""
    tests = sorted({test for each in table for test in each["tests"]})
    files = itertools.groupby((test.split("::") for test in tests), lambda place: place[0])
    estimators = sorted({who for each in table for who, _ in each["in"]})
    return {f"estimators/{name}.md": page(name, table) for name in estimators} | {
        f"{page_of(path)}.md": test_page(path, [name for _, name in places])
        for path, places in files
    }


def write_pages():
    """Write what has changed; a page that is the same keeps its time."""
    for name, text in pages(releases()).items():
        path = PROOFS / name
        path.parent.mkdir(exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app):
    write_pages()
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
