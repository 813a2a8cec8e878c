"""Totals that are too small, and ledgers that hear something else."""

from dataclasses import replace
from functools import partial

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.numbers import RELATIONS
from sklearn_dp._costs.plan import PrivacyPlan
from sklearn_dp._privacy._ledger import PrivacyLedger
from sklearn_dp._privacy._session import PrivacySession

from .planting import MUTANTS, Mutant, mutant

_charge = partial(mutant, killed_by="check_charge_is_true", owner=PrivacyLedger, attribute="charge")


def _told(change):
    """The ledger hears ``change(charge)``, or nothing where that is None."""

    def wrap(original):
        def charge(self, charge, label=None):
            told = change(charge)
            return None if told is None else original(self, told, label)

        return charge

    return wrap


for _name, _change in {
    "ledger told of rows where groups are protected": lambda charge: replace(charge, unit="row"),
    "ledger told that Gaussian is not, and the other way round": lambda charge: replace(
        charge, gaussian=not charge.gaussian
    ),
    "ledger told nothing where there are groups": lambda charge: (
        None if charge.unit == "group" else charge
    ),
    "ledger told half of epsilon": lambda charge: replace(charge, epsilon=charge.epsilon / 2),
    "ledger told half of rho": lambda charge: replace(charge, rho=charge.rho / 2),
    "ledger told a smaller delta": lambda charge: replace(charge, delta=charge.delta / 10),
    "ledger told a larger failure probability": lambda charge: replace(
        charge, delta_failure=charge.delta_failure / 2 + 1e-12
    ),
    "ledger told another relation": lambda charge: replace(
        charge, relation=RELATIONS[charge.relation == RELATIONS[0]]
    ),
    "ledger told another label": lambda charge: replace(charge, label="mean"),
}.items():
    _charge(_name)(_told(_change))


def _twice(original):
    return lambda self, *args, **options: 2 * original(self, *args, **options)


def _of_half(original):
    return lambda self, rho, *args, **options: original(self, rho / 2, *args, **options)


MUTANTS.append(
    Mutant(
        "accounting twice as generous in both directions",
        ("check_total_is_right",),
        ((PrivacyBudget, "to_rho", _twice), (PrivacyBudget, "epsilon_of", _of_half)),
    )
)


@mutant(
    "budgets worth a tenth more noise than they pay for",
    "check_total_is_right",
    PrivacyBudget,
    "epsilon_of",
)
def _(original):
    return lambda self, rho, *args, **options: original(self, rho / 1.1, *args, **options)


@mutant("conversion with ten times the delta", "check_total_is_right", PrivacyBudget, "epsilon_of")
def _(original):
    return lambda self, *args, **options: original(
        replace(self, delta=10 * self.delta), *args, **options
    )


@mutant("report tells half of epsilon", "check_plan_and_report_agree", PrivacySession, "report")
def _(original):
    return lambda self: replace(original(self), epsilon=self.plan.epsilon / 2)


@mutant("report tells a smaller delta", "check_plan_and_report_agree", PrivacySession, "report")
def _(original):
    return lambda self: replace(original(self), delta=self.plan.target.delta / 2)


@mutant("report tells another unit", "check_plan_and_report_agree", PrivacySession, "report")
def _(original):
    return lambda self: replace(original(self), unit="group")


@mutant("plan and report tell half of epsilon", "check_total_is_right", PrivacyPlan, "epsilon")
def _(original):
    return property(lambda self: original.fget(self) / 2)
