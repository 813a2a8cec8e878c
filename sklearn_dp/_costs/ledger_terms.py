"""The terms of a ledger: what fits on one data set may spend in total, and the log of it.

A ledger is a *privacy filter*: it holds a total fixed at its creation and admits a charge only if
everything charged so far, this charge included, stays within the total. Whoever charges may choose
each budget, and whether to go on, after seeing the results of all earlier fits, so the rule must be
sound under fully adaptive composition. Three rules are, each with two costs that simply add up and
one cap for each cost:

==============  ====================  ===============================================
composition     costs that add up     caps, for a total of (E, D)
==============  ====================  ===============================================
``"basic"``     epsilon, delta        E, D
``"zcdp"``      rho, delta_failure    zcdp_rho(E, D - F), F with F = D / 2
``"gaussian"``  rho, delta_failure    gaussian_rho(E, D - F), F with F = D / 1000
==============  ====================  ===============================================

A total of (rho, delta) is kept by ``"zcdp"``, with rho and delta themselves as the caps; and
``"gaussian"`` admits Gaussian fits only.

**Proofs.** P and Q are the laws of everything released on two neighboring data sets, S an event.

*Basic* [1]_. Claim: with (e, d) left after a history h, P(S|h) <= exp(e) Q(S|h) + d. It holds when
nothing more is released. Let the next fit, whose budget (e1, d1) is a function of h, satisfy
e1 <= e and d1 <= d, and let o be its output. By induction
g(o) = P(S|h,o) - (d - d1) <= min(1, exp(e - e1) Q(S|h,o)) =: u(o), and 0 <= u <= 1, so that
P(S|h) - (d - d1) = E_P[g] <= E_P[u] <= exp(e1) E_Q[u] + d1 <= exp(e) Q(S|h) + d1.
With h empty: (E, D)-DP. In particular N fits of (E/N, D/N) always fit, of whatever kind.

*zCDP* [2]_. Let each fit be (rho_i, f_i)-zCDP: its two laws are mixtures, with weight 1 - f_i, of
laws whose Renyi divergence of each order a > 1 is at most a rho_i. Let P*, Q* be the laws of the
transcript when all fits draw from these components. The weights along any transcript multiply to
at least 1 - sum f_i >= 1 - F, so P = (1 - F) P* + F P' for some law P', and Q likewise. For P*
and Q*, by induction as above, with r left after h:
E_Q*[(P*/Q*)^a | h] = E_o[(p/q)^a E_Q*[(P*/Q*)^a | h, o]] <= exp((a - 1) a rho_1)
exp((a - 1) a (r - rho_1)). So the whole is (R, F)-zCDP, and (E, D)-DP when zcdp_epsilon(R, D - F)
<= E, as P(S) <= (1 - F) P*(S) + F <= (1 - F) (exp(E) Q*(S) + D - F) + F <= exp(E) Q(S) + D.

*Gaussian* [3]_. Let each fit consist of Gaussian releases whose costs m_j^2 / 2 add up to at most
rho_i, but for failures of probability f_i, treated as above. Given the history, the means of
release j under the two data sets lie m <= m_j standard deviations apart. Draw the noise in this
direction as 1/m times the increment of a Brownian motion W over a time of m^2, all other noise
independently: the two means then differ by a drift of W of exactly one, and the transcript is a
(randomized) function of W on [0, 2 R]. Telling W from W with drift one is telling N(0, 1) from
N(sqrt(2 R), 1), however the m_j were chosen on the way: sqrt(2 R)-GDP, and so (E, D - F)-DP for
R = gaussian_rho(E, D - F).

*Both kinds in one fit.* Steps that are e_i-DP, but for failures as above, and Gaussian releases of
at most R in all, in any order: let H be the law of a transcript whose steps see the first data set
and whose Gaussian releases the second. Of P and H only the Gaussian laws differ, of H and Q only
those of steps: P(S) <= exp(g) H(S) + D - F, where R = gaussian_rho(g, D - F), and H(S) <= exp(sum
e_i) Q(S). So the whole is (g + sum e_i, D). A fit may take one of several paths, each such a whole
for the same (E, D), if only steps come before the choice: it is then one of a history h with P(h)
<= exp(e) Q(h), where e is what these cost, and P(S|h) <= exp(E - e) Q(S|h) + D. A Gaussian release
before it would have a loss that follows no e: each path could lose D of its own.

*Disjoint values* [4]_. A key (region) lists values (north, ...) such that each unit lies in at most
one of them, whatever other units there are, and a fit that is charged to a value reads the rows of
its units only. Take two neighbors that differ by a unit u, added or removed, and a history h. The
next fit has the same law on both if it is charged to a value in which u does not lie, and otherwise
it is as close as its charge says. So for this pair it is a fit of costs zero or of its own costs,
and which of the two is a function of h: u is fixed with the pair, the charge follows from h. The
three proofs above let costs be any functions of h, and need only that along every transcript they
stay within the caps. They hold for this pair if the charges that u pays do: what is common, and
what is charged to one value of each key. A charge is admitted only if this holds for *every*
combination of listed values, whether there are such units or not. So that decision follows from
the charges and from h, too: what north has shown may decide what south is asked, and whether
south's charge still fits. [4]_ proves the harder case of units that leave in silence.

Both costs are sums, so each is largest where each key has its dearest value: all combinations are
within the two caps if and only if these two sums are. As a pair they may belong to two different
units: what is shown as spent is then above what any unit has paid.

Under "replace", u may lie in north, its replacement in south. The fit in north then sees a unit
removed, of which a guarantee for replacing one says nothing, so such ledgers have no keys, nor have
those of clients that take part with or without rows.

**Why the rule is fixed at creation.** Each rule alone is sound; admitting whatever *one* of them
admits is not, when budgets depend on results. After a first result of small privacy loss it pays to
spend all of the remaining delta on failures, after a large one to spend it on more Gaussian noise;
the two together exceed D (by up to a factor of two). For the same reason D - F is no function of
the failures that happened to be charged. With (E, D) chosen, ``"basic"`` admits any mixture that
adds up; ``"gaussian"`` admits about N fits of (E / sqrt(N), D / N), but never one of all of (E, D).

**Mechanisms without rho.** (epsilon, delta)-DP implies (epsilon tanh(epsilon / 2), delta)-zCDP,
which is at most the (epsilon^2 / 2, delta)-zCDP of [2]_.

**Arithmetic.** Costs are compared with caps exactly, with no rounding at all: the sign of a
correctly rounded sum is the sign of the exact sum. Totals and charges are numbers that people type
in decimals or compute as E / N, and a double is off by up to 2^-53 of them. Therefore caps that
were typed are read as ``cap (1 + 2^-51)``: ten charges of 0.1 fit in 1.0, and this total, larger
by 4.5e-16 of it, is what is guaranteed. Derived caps are used as they are, rounded down.

**As events of Google's library dp-accounting.** A charge says that a fit is (rho, f)-zCDP, and,
where all its releases are Gaussian, sqrt(2 rho)-GDP but for an event of probability f. The library
has events for the first part only:

==================  ==========================================================================
charge              event
==================  ==========================================================================
nothing             ``NoOpDpEvent``
Gaussian releases   ``GaussianDpEvent`` with noise multiplier 1 / mu, mu = sqrt(2 rho), rounded
                    down. Whether a guarantee is about adding or replacing a unit, mu bounds the
                    distance of the two means; under ``REPLACE_ONE`` the library's accountant of
                    privacy losses takes twice the distance, which is on the safe side.
anything else       ``ZCDpEvent(rho)``: a Renyi divergence of at most alpha rho at every order.
==================  ==========================================================================

The library has no event for disjoint sets of units either. Of each key, the events are those of
the value that paid most in all respects. If there is none, two events and a failure cover each
value v: with rho_v in all, z_v of it of other releases than Gaussian ones, f_v of failures, and
their largest rho, z and f, a Gaussian event of rho - z, another one of z, and f. For if v has more
than rho - z of Gaussian releases, what is beyond is also zCDP of the same rho (Gaussian noise
divides into independent parts), which makes at most rho_v - (rho - z) <= z of that kind.

No event of the library stands for the probability f that anything may be released. Both laws of the
transcript are mixtures, with weight 1 - f on the laws that the events describe (proof
above), so whatever an accountant says at delta - f holds for all at delta: for a set S,
P(S) <= (1 - f) P*(S) + f <= (1 - f) (exp(e) Q*(S) + delta - f) + f <= exp(e) Q(S) + delta.

**The log.** The logger ``sklearn_dp`` tells charges, releases and steps as they happen. A line
holds nothing that the ledger, the plan or the report of the fit does not show anyway: names, costs
and scales, and never what was released or counted. Which lines there are, and in which order,
follows from parameters and releases. So fits inside a fit, of which not all need to be released
(the runs of a search), are silent, as their number is secret, and so are fits of other libraries
(:mod:`sklearn_dp._silence`).

References
----------
.. [1] Rogers, Roth, Ullman and Vadhan, "Privacy odometers and filters: pay-as-you-go composition",
   NeurIPS 2016.
.. [2] Whitehouse, Ramdas, Rogers and Wu, "Fully-adaptive composition in differential privacy",
   ICML 2023; Bun and Steinke, "Concentrated differential privacy", TCC 2016.
.. [3] Smith and Thakurta, "Fully adaptive composition for Gaussian differential privacy", 2022.
.. [4] McSherry, "Privacy integrated queries", SIGMOD 2009 (disjoint parts); Feldman and Zrnic,
   "Individual privacy accounting via a Renyi filter", NeurIPS 2021.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from ..exceptions import BudgetExceededError, LedgerError
from . import accounting
from .accounting import mu_from_rho
from .budget import PrivacyBudget
from .numbers import (
    EVERYONE,
    Line,
    Payers,
    agreed_values,
    check_choice,
    check_delta,
    check_non_negative,
    check_payers,
    check_relation,
    check_unit,
    dearest,
    exact_sum,
    extra,
    float_up,
    in_words,
    is_real,
    payers_in_words,
    plain_text,
    sum_down,
    sum_up,
)
from .plan import PrivacyPlan

COMPOSITIONS = ("basic", "zcdp", "gaussian")

_FAILURE_SHARE = {"zcdp": 0.5, "gaussian": 1e-3}
_TYPED_SLACK = 2.0**-51  # of a cap that a person typed; a power of two, so products are exact


# -- terms -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LedgerCharge:
    """The cost of one fit, in every measure that a ledger may use.

    Parameters
    ----------
    epsilon, delta : float
        The fit is (epsilon, delta)-DP. An infinite epsilon means that no such bound is known.
    rho : float, optional
        The fit is (rho, delta_failure)-zCDP; by default what holds for every
        (epsilon, delta)-DP mechanism: epsilon tanh(epsilon / 2) and delta.
    delta_failure : float, default=0.0
        Used with `rho` only.
    gaussian : bool, default=False
        Whether all releases are plain Gaussian, with costs that add up to `rho`.
    unit : {"row", "group"}, default="row"
        The unit in which neighboring data sets differ.
    relation : str, default="add or remove"
        How they differ; see :class:`PrivacyLedger`.
    label : str, default=""
        Name of the estimator; never anything that depends on the data.
    time : str, default=""
        Set by the ledger.
    key, value : str, default=""
        Set by the ledger: whose units pay, where it is not all of them; see
        :meth:`PrivacyLedger.disjoint`.
    """

    epsilon: float
    delta: float
    rho: float | None = None
    delta_failure: float = 0.0
    gaussian: bool = False
    unit: str = "row"
    relation: str = "add or remove"
    label: str = ""
    time: str = ""
    key: str = ""
    value: str = ""

    @property
    def payers(self) -> Payers:
        """Key and value of the units that pay; both empty for all units."""
        return self.key, self.value

    @classmethod
    def of(cls, plan: PrivacyPlan, label: str) -> LedgerCharge:
        """Return the cost of a fit with a plan, whatever part of it the fit spends.

        Parameters
        ----------
        plan : PrivacyPlan
            Of an estimator: ``estimator.privacy_plan(n_features)``.
        label : str
            Name of the estimator.

        Returns
        -------
        charge : LedgerCharge
            In every currency.
        """
        return cls(
            epsilon=plan.epsilon,
            delta=plan.target.delta,
            rho=plan.rho,
            delta_failure=plan.delta_failure,
            gaussian=plan.gaussian,
            unit=plan.unit,
            relation=plan.relation,
            label=label,
        )

    def __post_init__(self) -> None:
        check_unit(self.unit)
        check_relation(self.relation)
        for name in ("unit", "relation", "label", "time"):
            self._set(name, plain_text(name, getattr(self, name)))
        if not isinstance(self.gaussian, bool | np.bool_):
            raise TypeError(f"gaussian must be a bool, got {type(self.gaussian).__name__}")
        self._set("gaussian", bool(self.gaussian))
        if not is_real(self.epsilon) or self.epsilon != math.inf:
            self._set("epsilon", check_non_negative("epsilon", self.epsilon))
        self._set("delta", check_delta("delta", self.delta, zero=True))
        if self.rho is None:
            rho, failure = accounting.approx_dp_zcdp(self.epsilon, self.delta)
            self._set("rho", rho)
            self._set("delta_failure", failure)
        self._set("rho", check_non_negative("rho", self.rho))
        failure = check_delta("delta_failure", self.delta_failure, zero=True)
        self._set("delta_failure", failure)
        for name, text in zip(("key", "value"), check_payers(self.key, self.value), strict=True):
            self._set(name, text)

    def _set(self, name: str, value: float | str) -> None:
        object.__setattr__(self, name, value)


@dataclass(frozen=True)
class LedgerTerms:
    """What a ledger allows; fixed when it is made. The module's docstring proves the rules."""

    budget: PrivacyBudget
    unit: str  # "row" or "group"
    composition: str  # "basic", "zcdp" or "gaussian"; a budget in rho knows "zcdp" only
    relation: str = "add or remove"  # what neighboring data sets do with a unit

    def __post_init__(self) -> None:
        in_rho = self.budget.rho is not None
        check_unit(self.unit)
        check_relation(self.relation)
        check_choice("composition", self.composition, ("zcdp",) if in_rho else COMPOSITIONS)
        for name in ("unit", "composition", "relation"):
            object.__setattr__(self, name, plain_text(name, getattr(self, name)))
        if self._derived and not self.budget.delta:
            raise ValueError(f"composition={self.composition!r} needs a delta above 0")

    @classmethod
    def of(
        cls,
        budget: object,
        unit: str = "row",
        composition: str | None = None,
        relation: str = "add or remove",
    ) -> LedgerTerms:
        """Terms with the default composition filled in."""
        if not isinstance(budget, PrivacyBudget):
            kind = f"{type(budget).__name__}; a file is opened with PrivacyLedger(path=...)"
            raise TypeError(f"budget of a ledger must be a PrivacyBudget, got {kind}")
        default = "basic" if budget.rho is None else "zcdp"
        return cls(budget, unit, default if composition is None else composition, relation)

    def starting(self, identity: str) -> str:
        """The first entry of a ledger."""
        return _entry("terms", identity=identity, **asdict(self))

    @property
    def _derived(self) -> bool:
        """True if the caps are computed from the budget rather than typed."""
        return self.budget.rho is None and self.composition != "basic"

    @property
    def columns(self) -> tuple[str, str]:
        """The two costs of a charge that add up."""
        basic = self.composition == "basic"
        return ("epsilon", "delta") if basic else ("rho", "delta_failure")

    @cached_property
    def caps(self) -> tuple[float, float]:
        """Most that each of the two costs may add up to."""
        budget = self.budget
        if budget.rho is not None:
            return budget.rho, budget.delta
        assert budget.epsilon is not None
        if self.composition == "basic":
            return budget.epsilon, budget.delta
        failure = budget.delta * _FAILURE_SHARE[self.composition]
        largest = accounting.zcdp_rho if self.composition == "zcdp" else accounting.gaussian_rho
        return largest(budget.epsilon, sum_down([budget.delta, -failure])), failure

    def costs(self, charge: LedgerCharge) -> tuple[float, float]:
        """The two costs of a charge."""
        return getattr(charge, self.columns[0]), getattr(charge, self.columns[1])

    def line(self, charge: LedgerCharge) -> Line:
        """Return the part of a charge that decides about later charges."""
        return *charge.payers, *self.costs(charge)

    def admit(self, charge: LedgerCharge, spent: Iterable[Line]) -> None:
        """Raise unless each unit that pays the charge can pay it, with what it has paid (the `line`
        of each earlier charge).

        A BudgetExceededError when one of the two sums would exceed its cap; its amounts are public.
        A LedgerError for another unit or relation, or a kind that the rule does not cover."""
        self._check_kind(charge)
        costs = self.costs(charge)
        columns = dearest(spent, charge.payers)
        whose = "" if charge.payers == EVERYONE else f" for {payers_in_words(charge.payers)}"
        for name, cap, cost, column in zip(self.columns, self.caps, costs, columns, strict=True):
            if self._exceeded(cap, [*column, cost]):
                remaining = _left(cap, column)
                # Outward rounding leaves a residue of what is used up.
                rest = f"only {remaining:.6g}" if remaining > 1e-6 * cap else "nothing"
                raise BudgetExceededError(
                    f"ledger: this needs {name} {cost:.6g} but {rest} of {cap:.6g} is left{whose} "
                    f"({self.composition} composition). Nothing was spent, no data were read.",
                    asked=dict(zip(self.columns, costs, strict=True)),
                    left=dict(zip(self.columns, map(_left, self.caps, columns), strict=True)),
                )

    def _exceeded(self, cap: float, column: list[float]) -> bool:
        """True if costs exceed a cap; exact: `fsum` rounds once, so its sign is the true sign."""
        slack = 0.0 if self._derived else cap * _TYPED_SLACK
        return math.fsum([*column, -cap, -slack]) > 0

    def check(self, charges: Iterable[LedgerCharge]) -> None:
        """Raise unless all of some charges are admitted, in whatever order: no cost is negative."""
        lines = []
        for charge in charges:
            self._check_kind(charge)
            lines.append(self.line(charge))
        if any(map(self._exceeded, self.caps, dearest(lines))):
            raise LedgerError("ledger: the charges exceed the total, so not all were admitted")

    def _check_kind(self, charge: LedgerCharge) -> None:
        """Raise unless the proofs at the top of the module cover the charge."""
        if charge.unit != self.unit:
            raise LedgerError(
                f"ledger protects each {self.unit}, but this fit protects each {charge.unit}: the "
                f"two guarantees do not add up. Use a ledger created with unit={charge.unit!r}."
            )
        if charge.relation != self.relation:
            raise LedgerError(
                f"ledger is for neighbors that {in_words(self.relation, self.unit)}, but this fit "
                f"is for those that {in_words(charge.relation, self.unit)}: the two guarantees do "
                f"not add up. Use a ledger created with relation={charge.relation!r}."
            )
        if self.composition == "gaussian" and not charge.gaussian:
            raise LedgerError(
                "ledger has composition='gaussian', but not all releases of this fit are Gaussian; "
                "use a ledger with composition='basic' or 'zcdp'."
            )


_COSTS = ("epsilon", "delta", "rho", "delta_failure")
"""In each of the currencies; a ledger counts two of them."""


@dataclass(frozen=True)
class LedgerState:
    """The entries of a ledger at one moment, and the amounts that the units of a value have paid.

    Entries are texts in JSON, to which others are only added: the terms, then charges, keys with
    their values, and days that have begun. Each has a hash that depends on all entries before it.
    Whoever has seen the last one, the *head*, notices if any entry of that time is changed, taken
    away or put elsewhere."""

    terms: LedgerTerms
    charges: tuple[LedgerCharge, ...]  # oldest first
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # with their values
    days: frozenset[tuple[str, int, str]] = frozenset()  # a stream; number and name of a day of it
    identity: str = ""  # random; copies of a file have the same one
    heads: tuple[str, ...] = ()  # the hash of each entry
    payers: Payers = EVERYONE  # whom `spent` and `remaining` are about

    @classmethod
    def of(cls, entries: Iterable[str]) -> LedgerState:
        """Build the state from entries; any error is damage of its entries."""
        first, *others = entries
        content = json.loads(first)
        if content.pop("kind") != "terms":
            raise ValueError("the first entry has to be the terms")
        identity, budget = content.pop("identity"), PrivacyBudget(**content.pop("budget"))
        terms = LedgerTerms(budget, **content)
        return cls(terms, (), identity=identity, heads=(_chained("", first),)).after(others)

    def after(self, entries: Iterable[str]) -> LedgerState:
        """Return the state after more entries; any error is damage of these."""
        charges, keys = list(self.charges), dict(self.keys)
        days, heads = set(self.days), list(self.heads)
        for entry in entries:
            heads.append(_chained(heads[-1], entry))
            content = json.loads(entry)
            kind = content.pop("kind")
            if kind == "charge":
                epsilon = content.pop("epsilon")
                charges.append(LedgerCharge(math.inf if epsilon is None else epsilon, **content))
            elif kind == "key":
                key, keys[key] = agreed_values({}, relation=self.terms.relation, **content)
            elif kind == "day":
                days.add((content["stream"], content["number"], content["day"]))
            else:
                raise ValueError("an entry of an unknown kind")
        return replace(
            self, charges=tuple(charges), keys=keys, days=frozenset(days), heads=tuple(heads)
        )

    @property
    def head(self) -> str:
        """The hash of the last entry."""
        return self.heads[-1]

    def charging(self, charge: LedgerCharge) -> str:
        """The entry of a charge, if it is admitted; otherwise an error."""
        self._check_listed(charge)
        self.terms.admit(charge, map(self.terms.line, self.charges))
        # JSON has no infinity.
        epsilon = None if charge.epsilon == math.inf else charge.epsilon
        return _entry("charge", **{**vars(charge), "epsilon": epsilon})

    def check(self) -> None:
        """Raise unless all charges were admitted."""
        self.terms.check(self.charges)
        for charge in self.charges:
            self._check_listed(charge)

    def _check_listed(self, charge: LedgerCharge) -> None:
        """Refuse a charge to units that nobody has said to be apart from others."""
        if charge.payers != EVERYONE and charge.value not in self.keys.get(charge.key, ()):
            raise LedgerError(f"ledger: {payers_in_words(charge.payers)} is not listed")

    def listing(self, key: str, values: Iterable[str] | None) -> str | None:
        """The entry of a key with its values; None if it is listed already."""
        name, agreed = agreed_values(self.keys, key, values, self.terms.relation)
        return None if name in self.keys else _entry("key", key=name, values=agreed)

    def beginning(self, stream: str, number: int, day: str) -> str:
        """The entry of a day of a stream, whose rows are read next; an error if they have been.

        Copies of a model are one stream: a day without a name is refused if any copy has come as
        far. Parts of a stream ("stream/part") have rows apart from each other, but not from the
        whole."""
        of_both = [
            (n, name) for of, n, name in self.days
            if f"{of}/".startswith(f"{stream}/") or f"{stream}/".startswith(f"{of}/")
        ]  # fmt: skip
        if day and any(name == day for _, name in of_both):
            raise LedgerError(
                f"ledger: the day {day} was begun before, so its rows have been read, and log or "
                "callbacks may have shown what was released. Go on with the next day."
            )
        if not day and any(n >= number for n, _ in of_both):
            raise LedgerError(
                f"ledger: day number {number} was begun before, by a copy of this model or by a "
                "fit that failed. If these are rows that nothing has read, give their day a name "
                "of its own: day=..."
            )
        return _entry("day", stream=stream, number=number, day=day)

    def _paid(self, charges: Iterable[LedgerCharge]) -> tuple[list[float], list[float]]:
        """The two costs of some charges, of those that the unit pays which pays most."""
        return dearest(map(self.terms.line, charges), self.payers)

    @cached_property
    def _columns(self) -> tuple[list[float], list[float]]:
        return self._paid(self.charges)

    @property
    def counted(self) -> tuple[LedgerCharge, ...]:
        """The charges that some of the units pay."""
        key, value = self.payers
        return tuple(each for each in self.charges if each.key != key or each.value == value)

    @property
    def spent(self) -> dict[str, float]:
        """Each cost that the ledger counts, of the units that have paid most, rounded up."""
        return self._spent(self._columns)

    @property
    def remaining(self) -> dict[str, float]:
        """Return how much of each cost all units have left, rounded down."""
        return self._remaining(self._columns)

    def _spent(self, columns: Iterable[Sequence[float]]) -> dict[str, float]:
        return dict(zip(self.terms.columns, map(sum_up, columns), strict=True))

    def _remaining(self, columns: Iterable[Sequence[float]]) -> dict[str, float]:
        return dict(zip(self.terms.columns, map(_left, self.terms.caps, columns), strict=True))

    def values_of(self, key: str) -> Iterator[tuple[str, dict[str, float], dict[str, float]]]:
        """Return how much the units of each value of a key have spent, and have left."""
        rest: list[Line] = []
        by_value: dict[str, list[Line]] = {value: [] for value in self.keys[key]}
        for charge in self.charges:
            lines = by_value.setdefault(charge.value, []) if charge.key == key else rest
            lines.append(self.terms.line(charge))
        others = dearest(rest, self.payers)
        for value, lines in by_value.items():
            columns = [a + b for a, b in zip(others, dearest(lines), strict=True)]
            yield value, self._spent(columns), self._remaining(columns)

    def content(self) -> dict[str, Any]:
        """Return the total, what is spent and left (of `payers`, if the ledger is of one value of
        a key), and the charges, for JSON: null where a part of the total is not set, or a bound is
        infinite. Each charge has its costs in all currencies, also those not counted."""
        names = (*_COSTS, "time", "label", "gaussian", "relation", "key", "value")
        return {
            "identity": self.identity,
            "head": self.head,
            "total": {name: getattr(self.terms.budget, name) for name in _COSTS[:3]},
            "unit": self.terms.unit,
            "composition": self.terms.composition,
            "relation": self.terms.relation,
            "payers": list(self.payers),
            "spent": self.spent,
            "remaining": self.remaining,
            "keys": {
                key: {
                    value: {"spent": spent, "remaining": remaining}
                    for value, spent, remaining in self.values_of(key)
                }
                for key in self.keys
            },
            "charges": [
                {
                    name: None if getattr(charge, name) == math.inf else getattr(charge, name)
                    for name in names
                }
                for charge in self.charges
            ],
            "days": sorted(self.days),
        }

    def used(self) -> tuple[int, float]:
        """Which of the two costs runs out first, and the share of it that is spent."""
        caps = zip(self.spent.values(), self.terms.caps, strict=True)
        parts = [spent / cap if cap else 0.0 for spent, cap in caps]  # a cap of 0 holds nothing
        which = int(parts[1] > parts[0])
        return which, parts[which]

    def by_label(self) -> dict[str, tuple[list[LedgerCharge], float]]:
        """Charges of one label, and their share of the cost that runs out first."""
        groups: dict[str, list[LedgerCharge]] = {}
        for charge in self.counted:
            groups.setdefault(charge.label or "without a label", []).append(charge)
        cap = self.terms.caps[which := self.used()[0]] or 1.0
        return {name: (each, sum(self._paid(each)[which]) / cap) for name, each in groups.items()}


def _left(cap: float, costs: Sequence[float]) -> float:
    """Return the unspent part of a cap, rounded down: what its slack and the rounding of charges
    leave is nothing.

    >>> _left(1.0, [0.5, 0.25]), _left(1.0, [0.1] * 10), _left(2.0, [1.0, 1.0 - 1e-11])
    (0.25, 0.0, 0.0)
    """
    remaining = sum_down([cap, *(-cost for cost in costs)])
    return remaining if remaining > 1e-9 * cap else 0.0


def _entry(kind: str, **content: Any) -> str:
    return json.dumps({"kind": kind, **content}, allow_nan=False)


def _chained(before: str, entry: str) -> str:
    """The hash of an entry that follows one with the hash `before` ("" for the first)."""
    return sha256(f"{before}\n{entry}".encode()).hexdigest()


def events_of(state: LedgerState) -> tuple[Any, float]:
    """A `ComposedDpEvent` of what a unit has paid, and the sum of its failures, rounded up. The
    charges are about one unit and one relation, as those of a ledger are."""
    with extra("accounting"):
        import dp_accounting
    values: dict[str, dict[str, list[LedgerCharge]]] = {}
    for charge in state.counted:
        values.setdefault(charge.key, {}).setdefault(charge.value, []).append(charge)
    paid = [charge for each in values.values() for charge in _covering(list(each.values()))]
    event = dp_accounting.ComposedDpEvent([_event_of(charge) for charge in paid])
    return event, sum_up(charge.delta_failure for charge in paid)


def _covering(several: Sequence[Sequence[LedgerCharge]]) -> Sequence[LedgerCharge]:
    """The charges that cover those of any one value; see the proof at the top."""
    totals = [_totals(charges) for charges in several]
    rho, other, failure = most = tuple(map(max, zip(*totals, strict=True)))
    if most in totals:
        return several[totals.index(most)]
    return [
        LedgerCharge(math.inf, 0.0, rho=float_up(rho - other), gaussian=True),
        LedgerCharge(math.inf, 0.0, rho=float_up(other), delta_failure=float_up(failure)),
    ]


def _totals(charges: Iterable[LedgerCharge]) -> tuple[Fraction, Fraction, Fraction]:
    """rho, that of other releases than Gaussian ones, and failures."""
    charges = list(charges)
    rhos = [(charge.rho or 0.0, charge.gaussian) for charge in charges]  # filled in when made
    return (
        exact_sum(rho for rho, _ in rhos),
        exact_sum(rho for rho, gaussian in rhos if not gaussian),
        exact_sum(charge.delta_failure for charge in charges),
    )


def _event_of(charge: LedgerCharge) -> Any:
    import dp_accounting

    assert charge.rho is not None  # filled in when a charge is made
    if charge.rho == 0:
        return dp_accounting.NoOpDpEvent()
    if charge.gaussian:
        return dp_accounting.GaussianDpEvent(math.nextafter(1 / mu_from_rho(charge.rho), 0.0))
    return dp_accounting.ZCDpEvent(rho=charge.rho)


# -- the log ---------------------------------------------------------------------------------------


LOGGER = logging.getLogger("sklearn_dp")
LOGGER.addHandler(logging.NullHandler())


def log_charge(place: str | None, charge: LedgerCharge) -> None:
    """A ledger was charged: that of path `place`, or for None one in memory."""
    LOGGER.info(
        "ledger %s: charged (%.6g, %.3g)-DP for %s%s",
        place or "in memory",
        charge.epsilon,
        charge.delta,
        charge.label or "a fit",
        "" if charge.payers == EVERYONE else f" on {payers_in_words(charge.payers)}",
    )
