"""Check the proofs of this folder: `make prove`, or `python proofs/check.py`.

1. What the statements quote of the package, and the numbers that they use, are what stands there.
   This needs nothing but Python; the test suite does it too.
2. Coq compiles every file.
3. Every statement has a proof, and the proofs rest on the axioms of axioms.txt only.
4. The integer functions of the sampler give the same numbers in Coq and in Python.
5. Coq's checker, a program of its own, goes through the compiled proofs once more.

`--quotes` stops after the first step, `--folder` is another copy of the repository.
"""

import argparse
import ast
import importlib.util
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

PACKAGES = "coq libcoq-coquelicot libcoq-flocq"
HINT = f"""Coq is not installed. On Debian 12, whose Coq 8.16 the proofs are for:

    sudo apt-get install --no-install-recommends {PACKAGES}
"""
COMPILE = ["coqc", "-q", "-noglob", "-w", "none", "-Q", ".", "ReleasePath"]
NUMBER = re.compile(
    r"^Definition (\w+) : [RZ] := (.+)\. \(\* (\S+): ([^|*]+)(?:\| (.+) )?\*\)$", re.M
)
QUOTE = re.compile(r"\(\*python (\S+)\n(.*?)\n\*\)", re.S)


class Refused(Exception):
    """What does not hold, in words."""


# ------------------------------------------------------------------ the package and the statements


class _Plain(ast.NodeTransformer):
    """Code without docstrings and types."""

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:]
        node.returns = None
        return node

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        return node if node.value is None else ast.Assign([node.target], node.value)


def parsed(source):
    """The tree of some code, without what makes no difference."""
    return ast.fix_missing_locations(_Plain().visit(ast.parse(source)))


def parts_of(path):
    """Every statement and every function of a module, in one spelling."""
    tree = parsed(path.read_text(encoding="utf-8"))
    return {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.stmt)}


def wrong_quotes(root):
    """Quoted statements and functions that do not stand in the package."""
    known, found = {}, 0
    for file in sorted((root / "proofs").glob("*.v")):
        for path, text in QUOTE.findall(file.read_text(encoding="utf-8")):
            if path not in known:
                known[path] = parts_of(root / path)
            for node in parsed(text).body:
                found += 1
                if ast.unparse(node) not in known[path]:
                    first = text.splitlines()[node.lineno - 1].strip()
                    yield f"{file.name} quotes {path}, where this is something else now: {first}"
    if not found:
        yield "nothing is quoted"


def value(node):
    """A number written with + - * / and **, exactly; floats are what they are."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return Fraction(node.value)
    if ast.unparse(node) == "sys.float_info.epsilon":
        return Fraction(sys.float_info.epsilon)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -value(node.operand)
    if isinstance(node, ast.BinOp):
        left, right = value(node.left), value(node.right)
        if isinstance(node.op, ast.Pow):
            return left ** int(right)
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Div):
            return left / right
        if isinstance(node.op, ast.Add | ast.Sub):
            return left + right if isinstance(node.op, ast.Add) else left - right
    raise Refused(f"not a number: {ast.unparse(node)}")


def number_in(path, name, expression):
    """The value of a name of a module, or of an expression that occurs in a function of it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if expression is None:
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
                return value(node.value)
        raise Refused(f"{path.name} has no {name}")
    wanted = ast.unparse(ast.parse(expression, mode="eval").body)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            inside = (n for n in ast.walk(node) if isinstance(n, ast.expr))
            if any(ast.unparse(n) == wanted for n in inside):
                return value(ast.parse(expression, mode="eval").body)
    raise Refused(f"{name} of {path.name} does not contain {expression}")


def wrong_numbers(root):
    """Numbers of Constants.v that are not those of the package."""
    text = (root / "proofs" / "Constants.v").read_text(encoding="utf-8")
    found = NUMBER.findall(text)
    if len(found) != text.count("\nDefinition ") or not found:
        yield "a line of Constants.v cannot be read"
    for name, written, path, place, expression in found:
        python = re.sub(r"^/", "1 /", written.replace("^", "**"))
        here = value(ast.parse(python, mode="eval").body)
        try:
            there = number_in(root / path, place.strip(), expression or None)
        except Refused as error:
            yield str(error)
            continue
        # A decimal stands for the float next to it.
        if here != there and Fraction(float(here)) != there:
            yield f"{name} is {written} in Constants.v and {float(there)} in {path}"


def unproved(root):
    """Statements without a theorem that is among those whose axioms are printed."""
    stated, proved = (
        (root / "proofs" / name).read_text(encoding="utf-8")
        for name in ("Statements.v", "Proved.v")
    )
    names = re.findall(r"^Definition (\w+) : Prop :=", stated, re.M)
    (every,) = re.findall(r"^Definition all_proved := \((.*?)\)\.", proved, re.M | re.S)
    listed = {name.strip() for name in every.split(",")}
    if not names:
        yield "nothing is stated"
    for name in names:
        if f"\nTheorem {name} : Statements.{name}.\n" not in proved or name not in listed:
            yield f"{name} is not proved"


def without_coq(root):
    """All that can be refused without Coq."""
    return [*wrong_numbers(root), *wrong_quotes(root), *unproved(root)]


# --------------------------------------------------------------------------------------------- Coq


def in_order(folder):
    """The files with those that each needs, which come before it."""
    needs = {}
    for path in sorted(folder.glob("*.v")):
        said = re.findall(r"From ReleasePath Require(?: Import)?([\s\w]*)", path.read_text("utf-8"))
        needs[path.stem] = " ".join(said).split()
    done = []
    while len(done) < len(needs):
        ready = [name for name in needs if name not in done and set(needs[name]) <= set(done)]
        if not ready:
            raise Refused("files of proofs/ need each other, or one that is not there")
        done += ready
    return [(name, needs[name]) for name in done]


def needed(name, by, files):
    """Whether a file is needed by another one."""
    return any(name == other or needed(name, other, files) for other in files[by])


def run(folder, *command):
    """The output of a command in a folder; what it complains of if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise Refused(f"{' '.join(command)}:\n{done.stdout}{done.stderr}".strip())
    return done.stdout


def compile_all(folder, told=print, goal="Proved"):
    """Compile a file and all that it needs, if older than what it is made from; the axioms that
    Proved.v prints."""
    printed, files = {}, in_order(folder)
    for name, needs in files:
        if name != goal and not needed(name, goal, dict(files)):
            continue
        made = folder / f"{name}.vo"
        of = [folder / f"{name}.v", *(folder / f"{other}.vo" for other in needs)]
        new = made.exists() and made.stat().st_mtime >= max(path.stat().st_mtime for path in of)
        if name == "Proved" or not new:
            begin = time.perf_counter()
            printed[name] = run(folder, *COMPILE, f"{name}.v")
            told(f"  {name}.v {time.perf_counter() - begin:.1f} s")
    return set(re.findall(r"^([\w.]+)(?= :|$)", printed.get("Proved", ""), re.M))


def wrong_axioms(folder, found):
    """Axioms that are not in the list, and the other way round."""
    text = (folder / "axioms.txt").read_text(encoding="utf-8")
    listed = set(re.sub(r"#.*", "", text).split())
    yield from (f"a proof rests on {name}, which is not in axioms.txt" for name in found - listed)
    yield from (f"no proof rests on {name} of axioms.txt" for name in listed - found)


def examples(root):
    """Lines of Coq: results of the package's integer functions, for some arguments."""
    path = root / "sklearn_dp" / "_privacy" / "_noise.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    exact = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exact)
    draw = random.Random(0)
    yield "From Coq Require Import ZArith.\nFrom ReleasePath Require Import Sampler."
    yield "Open Scope Z_scope."
    for _ in range(12):
        numerator, denominator = draw.randrange(2 ** draw.randrange(40)), 1 + draw.randrange(2**36)
        for name in ("normal_tail_bounds", "exp_bounds"):
            for precision in (128, 192):
                low, high = getattr(exact, name)(numerator, denominator, precision)
                call = f"{name} 9999 {numerator} {denominator} {precision}"
                yield f"Goal {call} = Some ({low}, {high}). Proof. vm_compute. reflexivity. Qed."
        last, guess = draw.randrange(2**20), draw.randrange(2**20)
        found = exact.smallest_at_most(lambda k, last=last: k < last, guess, 0)
        call = f"smallest_at_most 99 (fun k => k <? {last}) {guess} 0"
        yield f"Goal {call} = Some {found}. Proof. vm_compute. reflexivity. Qed."


def with_coq(root, told=print):
    """All that Coq refuses."""
    folder = root / "proofs"
    try:
        wrong = [*wrong_axioms(folder, compile_all(folder, told))]
        modules = [
            part for name, _ in in_order(folder) for part in ("-norec", f"ReleasePath.{name}")
        ]
        with tempfile.TemporaryDirectory() as other:
            (Path(other) / "Examples.v").write_text("\n".join(examples(root)), encoding="utf-8")
            run(folder, *COMPILE, str(Path(other) / "Examples.v"))
        run(folder, "coqchk", "-silent", "-Q", ".", "ReleasePath", *modules)
    except Refused as error:
        return [str(error)]
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quotes", action="store_true", help="only what needs no Coq")
    parser.add_argument("--folder", type=Path, default=Path(__file__).resolve().parents[1])
    arguments = parser.parse_args()
    begin = time.perf_counter()
    wrong = without_coq(arguments.folder)
    if not wrong and not arguments.quotes:
        if shutil.which("coqc") is None:
            return HINT
        wrong = with_coq(arguments.folder)
    if wrong:
        return "\n".join(wrong)
    print(f"The proofs hold ({time.perf_counter() - begin:.0f} s).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
