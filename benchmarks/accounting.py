"""Our accountant beside dp-accounting and the textbook formulas: tightness and time per call.

Run ``python benchmarks/accounting.py``; it prints its tables and writes
``doc/benchmarks/accounting.md``. Needs dp-accounting. Takes about a minute.
"""

import math
import timeit

import _run  # first: one thread
import dp_accounting
import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.optimize import brentq

from sklearn_dp import accounting as ours
from sklearn_dp._costs.accounting import bounded_range_zcdp_rho, laplace_zcdp_rho

OUTPUT = _run.PAGES / "accounting.md"
STEP = 1e-4  # discretization of the privacy loss, for both the optimistic and the pessimistic PLD
ORDERS = 1 + np.logspace(-2, 3, 1000)


def pld_options(pessimistic):
    """Only the pessimistic estimate exists as connect-the-dots."""
    return {
        "pessimistic_estimate": pessimistic,
        "use_connect_dots": pessimistic,
        "value_discretization_interval": STEP,
    }


def pld_gaussian(sigma, pessimistic=True):
    return pld.from_gaussian_mechanism(sigma, **pld_options(pessimistic))


def pld_laplace(epsilon):
    return pld.from_laplace_mechanism(1 / epsilon, **pld_options(True))


def pld_sigma(epsilon, delta, pessimistic):
    """Least noise by PLD: a lower (optimistic) or upper (pessimistic) bound of the optimum."""
    guess = dp_accounting.get_sigma_gaussian(epsilon, delta)

    def excess(sigma):
        got = pld_gaussian(sigma, pessimistic).get_delta_for_epsilon(epsilon)
        return math.log(got / delta)

    return brentq(excess, guess * 0.99, guess * 1.01, rtol=1e-9)


def rdp_epsilon(events, delta):
    accountant = dp_accounting.rdp.RdpAccountant(orders=ORDERS)
    for event, count in events:
        accountant.compose(event, count)
    return accountant.get_epsilon(delta)


def table(title, header, rows):
    lines = [f"## {title}", "", f"| {' | '.join(header)} |", f"|{' --- |' * len(header)}"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join(lines) + "\n"


def sigma_rows():
    for delta in (1e-5, 1e-6, 1e-8):
        for epsilon in (0.1, 0.5, 1.0, 2.0, 5.0):
            sigma = ours.gaussian_sigma(epsilon, delta)
            low, high = (pld_sigma(epsilon, delta, kind) for kind in (False, True))
            textbook = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
            note = f"{textbook:.4f}" + (" (not proved)" if epsilon >= 1 else "")
            yield (epsilon, f"{delta:g}", f"{sigma:.6f}", f"{low:.6f} to {high:.6f}",
                   f"{sigma / low:.7f}", note, f"{textbook / sigma:.3f}")  # fmt: skip


def gaussian_rows():
    for delta in (1e-6, 1e-8):
        for rho in (0.01, 0.1, 0.5, 1.0, 2.0, 10.0):
            epsilon = ours.total_epsilon([ours.Gaussian(rho)], delta)
            sigma = 1 / math.sqrt(2 * rho)
            low, high = (
                pld_gaussian(sigma, kind).get_epsilon_for_delta(delta) for kind in (False, True)
            )
            rdp = rdp_epsilon([(dp_accounting.GaussianDpEvent(sigma), 1)], delta)
            textbook = rho + 2 * math.sqrt(rho * math.log(1 / delta))
            yield (rho, f"{delta:g}", f"{epsilon:.5f}", f"{low:.5f} to {high:.5f}", f"{rdp:.4f}",
                   f"{ours.zcdp_epsilon(rho, delta):.4f}", f"{textbook:.4f}")  # fmt: skip


def mixed_rows():
    cases = [(0.05, 0.1, 10), (0.1, 0.05, 100), (None, 0.1, 100), (0.5, 0.5, 5), (None, 1.0, 2)]
    delta = 1e-6
    for rho, epsilon, count in cases:
        events = [ours.Laplace(epsilon)] * count + ([ours.Gaussian(rho)] if rho else [])
        sigma = 1 / math.sqrt(2 * rho) if rho else None
        composed = pld_laplace(epsilon).self_compose(count)
        reference = [(dp_accounting.LaplaceDpEvent(1 / epsilon), count)]
        if rho:
            composed = composed.compose(pld_gaussian(sigma))
            reference.append((dp_accounting.GaussianDpEvent(sigma), 1))
        name = (f"Gaussian rho={rho} + " if rho else "") + f"{count} x Laplace eps={epsilon}"
        yield (name, f"{ours.total_epsilon(events, delta):.4f}",
               f"{composed.get_epsilon_for_delta(delta):.4f}",
               f"{rdp_epsilon(reference, delta):.4f}",
               f"{count * epsilon:.4f}" if not rho else "")  # fmt: skip


def cost_rows():
    for epsilon in (0.1, 0.5, 1.0, 2.0, 5.0):
        costs = (ours.pure_zcdp_rho, laplace_zcdp_rho, bounded_range_zcdp_rho)
        yield epsilon, f"{epsilon**2 / 2:.5f}", *(f"{cost(epsilon):.5f}" for cost in costs)


def milliseconds(function, number):
    function()
    return f"{1e3 * min(timeit.repeat(function, number=number, repeat=5)) / number:.4f}"


def time_rows():
    mixed = [ours.Laplace(0.05)] * 20 + [ours.Gaussian(0.01)] * 20
    calls = {
        "gaussian_delta(0.24, 1)": lambda: ours.gaussian_delta(0.24, 1.0),
        "gaussian_epsilon(0.24, 1e-6)": lambda: ours.gaussian_epsilon(0.24, 1e-6),
        "gaussian_rho(1, 1e-6)": lambda: ours.gaussian_rho(1.0, 1e-6),
        "gaussian_sigma(1, 1e-6)": lambda: ours.gaussian_sigma(1.0, 1e-6),
        "gaussian_sigma(1e6, 1e-300)": lambda: ours.gaussian_sigma(1e6, 1e-300),
        "zcdp_epsilon(0.1, 1e-6)": lambda: ours.zcdp_epsilon(0.1, 1e-6),
        "zcdp_rho(1, 1e-6)": lambda: ours.zcdp_rho(1.0, 1e-6),
        "total(40 mixed events)": lambda: ours.total_epsilon(mixed, 1e-6),
    }
    rivals = {
        "dp-accounting get_sigma_gaussian(1, 1e-6)": lambda: dp_accounting.get_sigma_gaussian(
            1.0, 1e-6
        ),
        "dp-accounting PLD epsilon, one Gaussian": lambda: pld_gaussian(4.2).get_epsilon_for_delta(
            1e-6
        ),
        "dp-accounting RDP epsilon, one Gaussian": lambda: rdp_epsilon(
            [(dp_accounting.GaussianDpEvent(4.2), 1)], 1e-6
        ),
    }
    yield from ((f"`{name}`", milliseconds(call, 50)) for name, call in calls.items())
    yield from ((name, milliseconds(call, 3)) for name, call in rivals.items())


def main():
    text = "\n".join([
        "# Accounting: tightness and time\n",
        f"Made by `python benchmarks/accounting.py` ("
        f"{_run.versions('numpy', 'dp-accounting')}).\n",
        "PLD is the numerical optimum up to its discretization: the ranges are its optimistic and\n"
        f"pessimistic bounds at a step of {STEP:g}. Our results are rounded to the safe side.\n",
        table("Noise of one Gaussian release (sensitivity 1)",
              ["epsilon", "delta", "our sigma", "PLD optimum", "ours / lower bound",
               "textbook sigma", "textbook / ours"], sigma_rows()),
        table("Epsilon of Gaussian releases that cost rho in all",
              ["rho", "delta", "ours (mu-GDP)", "PLD", "RDP", "our tight zCDP",
               "rho + 2 sqrt(rho log(1/delta))"], gaussian_rows()),
        table("Mixed compositions at delta = 1e-6 (epsilon)",
              ["events", "ours", "PLD", "RDP", "basic"], mixed_rows()),
        table("zCDP cost rho of mechanisms with an epsilon",
              ["epsilon", "epsilon^2 / 2", "any pure DP", "Laplace",
               "exponential mechanism"], cost_rows()),
        table("Milliseconds per call (best of 5 rounds)", ["call", "ms"], time_rows()),
    ])  # fmt: skip
    print(text)
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(text)


if __name__ == "__main__":
    main()
