"""False statements and other code, each of which the check has to refuse.

`python proofs/planted.py` plants all of them, one after the other, in copies of what the proofs are
about, and prints what each is refused with. A check that has never refused anything proves nothing.
"""

import importlib.util
import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
_spec = importlib.util.spec_from_file_location("check", Path(__file__).with_name("check.py"))
check = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check)

_WIDTH = 200  # characters of a refusal

GRID, UNITS = "sklearn_dp/_privacy/_grid.py", "sklearn_dp/_privacy/_units.py"
GAUSSIAN, ROUNDING = ("sklearn_dp/_privacy/_session.py", "sklearn_dp/_costs/numbers.py")
CONSTANTS, FLOATS, TABLES = "proofs/Constants.v", "proofs/Floats.v", "proofs/Tables.v"
ACCOUNTING = "sklearn_dp/_costs/accounting.py"
LAWS = EXACT = "sklearn_dp/_privacy/_noise.py"
SAMPLER = "proofs/Sampler.v"
PRIVACY, STATEMENTS, PROVED = "proofs/Privacy.v", "proofs/Statements.v", "proofs/Proved.v"


class Edit(NamedTuple):
    """Something false, in one or several files, and what has to refuse it."""

    name: str
    changes: tuple[tuple[str, str, str], ...]  # file, what stands there once, what is planted
    coq: str = ""  # the file that Coq must refuse; none: what is refused without Coq
    complaints: int = 1  # how many, without Coq

    def plant(self, root, folder):
        """A copy of all that is looked at, with the change in it."""
        shutil.copytree(root / "proofs", folder / "proofs", dirs_exist_ok=True)
        for file in (root / "proofs").glob("*.v"):
            for path, _ in check.QUOTE.findall(file.read_text(encoding="utf-8")):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / path, folder / path)
        for path, old, new in self.changes:
            text = (folder / path).read_text(encoding="utf-8")
            if text.count(old) != 1:
                raise LookupError(f"{self.name}: {path} has {text.count(old)} times {old!r}")
            (folder / path).write_text(text.replace(old, new), encoding="utf-8")

    def refusal(self, root, folder):
        """What it is refused with, or None."""
        self.plant(root, folder)
        told = check.without_coq(folder)
        if not self.coq:
            return told[0] if len(told) == self.complaints else None
        if told:
            raise LookupError(f"{self.name}: refused before Coq has seen it: {told}")
        try:
            goal = Path(self.coq).stem if self.coq.endswith(".v") else "Proved"
            axioms = check.compile_all(folder / "proofs", lambda line: None, goal)
        except check.Refused as error:
            told = [" ".join(str(error).split())]
        else:
            told = [*check.wrong_axioms(folder / "proofs", axioms)] if axioms else []
        return next((line for line in told if self.coq in line), None)


def both(file, old, new):
    """A change of a function of the package, and of the quote of it."""
    return (file, old, new), (FLOATS, old, new)


EDITS = (
    Edit("margin of the clip halved", ((GRID, "(1 - 2.0**-48)", "(1 - 2.0**-49)"),), complaints=2),
    Edit(
        "clip left out",
        (
            (
                GRID,
                "return clip_integer_rows(rows, min(steps, LIMIT), norms, own=True)",
                "return rows",
            ),
        ),
    ),
    Edit("limit doubled", ((GRID, "\nLIMIT = 2**24\n", "\nLIMIT = 2**25\n"),)),
    Edit("far rows not shrunk", ((GRID, "if longest > radius:", "if longest > 2 * radius:"),)),
    Edit("half the noise", ((GAUSSIAN, "math.sqrt(2 * rho)", "math.sqrt(8 * rho)"),)),
    Edit(
        "rounded up once",
        (
            (
                ROUNDING,
                "return math.nextafter(math.nextafter(value, math.inf), math.inf)",
                "return math.nextafter(value, math.inf)",
            ),
        ),
    ),
    Edit(
        "weighed rows to the nearest",
        ((UNITS, "return np.trunc(rows * (self.weights", "return np.rint(rows * (self.weights"),),
    ),
    Edit("a number of the statements", ((CONSTANTS, ": Z := 2 ^ 24.", ": Z := 2 ^ 23."),)),
    Edit(
        "a statement without a proof",
        ((STATEMENTS, "(** * 4.", "Definition more : Prop := True.\n\n(** * 4."),),
    ),
    Edit(
        "no margin, in the code and in the statements",
        (
            *both(GRID, "over]) * (1 - 2.0**-48)", "over]) * (1 - 2.0**-54)"),
            (CONSTANTS, " margin : R := / 2 ^ 48.", " margin : R := / 2 ^ 54."),
            (CONSTANTS, "clip_integer_rows | 2.0**-48", "clip_integer_rows | 2.0**-54"),
        ),
        coq="Clip.v",
    ),
    Edit(
        "clip left out of the statements",
        (
            (
                FLOATS,
                "clip (in_steps unit radius row) (steps_of unit radius).",
                "in_steps unit radius row.",
            ),
        ),
        coq="Clip.v",
    ),
    Edit(
        "clipped rows to the nearest",
        (
            (
                FLOATS,
                "map (fun x => Ztrunc (fl (IZR x * factor))) row.",
                "map (fun x => ZnearestE (fl (IZR x * factor))) row.",
            ),
        ),
        coq="Clip.v",
    ),
    Edit("one place up, not two", ((FLOATS, "next (next x)", "next x"),), coq="Clip.v"),
    Edit(
        "half the sensitivity of counts",
        ((STATEMENTS, "(repeat (IZR scale) n) (counts", "(repeat (IZR scale / 2) n) (counts"),),
        coq="Proved.v",
    ),
    Edit(
        "a smaller claim off the diagonal",
        ((STATEMENTS, "limit ^ 2 / sqrt 2 <= off", "limit ^ 2 / 2 <= off"),),
        coq="Proved.v",
    ),
    Edit(
        "weights of a group rounded up",
        (
            (
                STATEMENTS,
                "(WEIGHT_STEPS / Z.of_nat (length rows), row)",
                "(1 + WEIGHT_STEPS / Z.of_nat (length rows), row)",
            ),
        ),
        coq="Proved.v",
    ),
    Edit(
        "half the cost of noise",
        ((STATEMENTS, "zcdp near rho (fun x => noisy", "zcdp near (rho / 2) (fun x => noisy"),),
        coq="Proved.v",
    ),
    Edit(
        "half the cost of a fit",
        ((STATEMENTS, "zcdp near budget (published f)", "zcdp near (budget / 2) (published f)"),),
        coq="Proved.v",
    ),
    Edit(
        "a smaller mu",
        ((STATEMENTS, "0 < mu -> 2 * rho < mu ^ 2", "0 < mu -> rho < mu ^ 2"),),
        coq="Proved.v",
    ),
    Edit(
        "a smaller epsilon",
        ((STATEMENTS, "rho * (1 + b) - ln (1 + 1 / b)", "rho * (1 + b) - 2 * ln (1 + 1 / b)"),),
        coq="Proved.v",
    ),
    Edit(
        "budgets that later releases may exceed",
        (
            (
                PRIVACY,
                "costs_at_most costs (budget - rho) (next a)",
                "costs_at_most costs budget (next a)",
            ),
        ),
        coq="Laws.v",
    ),
    Edit(
        "a narrower guard band, in the code and in the statements",
        ((LAWS, "_REL = 2.0**-44", "_REL = 2.0**-46"), (CONSTANTS, "/ 2 ^ 44. (*", "/ 2 ^ 46. (*")),
        coq="Draw.v",
    ),
    Edit(
        "a narrower interval, in the code and in the statements",
        ((LAWS, "_WIDTH = 0.64", "_WIDTH = 0.62"), (CONSTANTS, "64 / 100. (*", "62 / 100. (*")),
        coq="Draw.v",
    ),
    Edit(
        "too small a multiple of log2(e), in the code and in the statements",
        (
            (EXACT, "spread = 185 * numerator", "spread = 184 * numerator"),
            (SAMPLER, "spread = 185 * numerator", "spread = 184 * numerator"),
            (SAMPLER, "Z := 185 * numerator", "Z := 184 * numerator"),
        ),
        coq="Bounds.v",
    ),
    Edit(
        "half the slack, in the statements",
        (
            (
                SAMPLER,
                "Z.shiftl ((n + 2) * (error + 2)) spread",
                "Z.shiftl ((n + 2) * (error + 2)) (spread - 1)",
            ),
        ),
        coq="Bounds.v",
    ),
    Edit(
        "a wrong series of pi, in the statements",
        ((SAMPLER, "arctan_of_inverse fuel 239", "arctan_of_inverse fuel 238"),),
        coq="Bounds.v",
    ),
    Edit(
        "epsilon rounded up by a quarter of what it takes, in the code and in the statements",
        (
            (ROUNDING, "\nROUNDING = 16 * sys", "\nROUNDING = 4 * sys"),
            (CONSTANTS, ": R := 16 / 2 ^ 52.", ": R := 4 / 2 ^ 52."),
        ),
        coq="Epsilon.v",
    ),
    Edit(
        "a term of epsilon left out",
        ((ACCOUNTING, "-math.log1p(1 / b), log_inverse / b, -math", "log_inverse / b, -math"),),
    ),
    Edit("half integers left out", ((EXACT, "(2 * k + 1) * scale.denom", "2 * k * scale.denom"),)),
    Edit("a guard band of nothing", ((LAWS, "product += radius * scale", "product += 0.0"),)),
    Edit(
        "a proof left out",
        ((PROVED, "Proof. exact Gaussian.noisy_law. Qed.", "Admitted."),),
        coq="axioms.txt",
    ),
)


def refused(edit):
    """What an edit is refused with, or None."""
    with tempfile.TemporaryDirectory() as folder:
        return edit.refusal(ROOT, Path(folder))


def main():
    """Plant all of them; what is not refused."""
    missed = []
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        refusals = threads.map(refused, EDITS)
    for edit, told in zip(EDITS, refusals, strict=True):
        print(f"{edit.name}: {(told or 'NOT REFUSED')[:_WIDTH]}", flush=True)
        missed += [] if told else [edit.name]
    return f"not refused: {missed}" if missed else 0


if __name__ == "__main__":
    sys.exit(main())
