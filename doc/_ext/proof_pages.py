"""The proof pages: one for each estimator, from `doc/proofs/releases.toml` and the plans.

Each page follows a plan: which releases an estimator can make, and of each the statement, the
sensitivity with its proof, the law, the share of the budget and the tests.
"""

import re
import tomllib
from pathlib import Path

PROOFS = Path(__file__).resolve().parents[1] / "proofs"
COSTS = {
    "gaussian": "rho = s² / (2 sigma²) for sensitivity s: exactly mu-GDP with mu = s / sigma",
    "laplace": "rho = epsilon + exp(-epsilon) - 1 for epsilon = s / scale, with s in l1",
    "exponential": "rho = epsilon² / 8 (bounded range)",
    "above threshold": "rho = epsilon tanh(epsilon / 2), as any epsilon-DP mechanism",
    "stability histogram": "rho of its noise, and delta for a box that only one neighbour has",
    "friendly core": "rho of the noise of its scores, and delta for an element without friends",
    "friendly average": "rho of its noise; delta for a size that is too large",
    "proportional noise": "rho of Gaussians whose covariance moves, and delta for their tails",
    "RecConcave": "rho of its choices and leads; delta for leads where neighbours differ",
    "several mechanisms": "rho and delta of all the fits",
    "approximate DP": "(epsilon, delta) as a whole, not divided further",
}


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


def section(release, names):
    tests = "\n".join(f"* `{test}`" for test in release["tests"])
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
    return f"""# {estimator}

The {n_entries} entries that a plan of `{estimator}` can hold, as {len(mine)} kinds of releases.
Which of them a certain fit makes follows from its parameters:
`{estimator}(...).privacy_plan(n_features=...)` lists them with their shares.
What holds for all of them is told [once](index.md). `#` stands for a number.

{sections}"""


def write_pages():
    """Write what has changed; a page that is the same keeps its time."""
    table = releases()
    folder = PROOFS / "estimators"
    folder.mkdir(exist_ok=True)
    for estimator in sorted({who for each in table for who, _ in each["in"]}):
        path, text = folder / f"{estimator}.md", page(estimator, table)
        text = text.replace("(index.md)", "(../index.md)")
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app):
    write_pages()
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
