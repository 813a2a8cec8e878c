"""What a report or a ledger says, as an entry of the Differential Privacy Deployments Registry."""

from typing import Any

from .._privacy._ledger import PrivacyLedger
from .._privacy._neighbors import in_words
from .._privacy._report import PrivacyReport
from .._version import __version__

_LIBRARY = (
    "Library: sklearn-dp {}. Sums are exact integers, and noise is drawn on the same integer grid, "
    "so the guarantee holds for the floating-point program. Timing is not protected."
)
_ROWS = "Whoever runs the fits sees the rows."
_CLIENTS = (
    "Clients keep their rows, unless a fit had them in one table. Whoever adds up what they send "
    "sees the sums without noise, unless clients add the noise under secure aggregation."
)
_NOISE = {
    "system": "",
    "seeded": " The noise can be reproduced: no guarantee against anyone who knows the seed.",
    "altered": " An audit altered the noise on purpose: there is no guarantee.",
    "forced": " An audit has set what was released: there is no guarantee.",
    "planned": " This is a plan: no fit has been made.",
}
_COMPOSED = "Adaptive composition of all releases: {}."


def deployment_entry(source: PrivacyReport | PrivacyLedger) -> dict[str, Any]:
    """Describe a fit or a study as an entry of the DP Deployments Registry.

    The registry [1]_ collects what organizations publish with differential privacy, one file for
    each data product. Everything that the package knows is filled in; what only you know, such as
    the name of the product and its intended use, is an empty string.

    Parameters
    ----------
    source : PrivacyReport or PrivacyLedger
        ``privacy_report_`` of a fit, or the ledger of a study: its entry has the cost of all
        charges so far.

    Returns
    -------
    entry : dict
        In the layout of the registry's template of 2026. ``json.dumps(entry)`` is valid YAML.

    Raises
    ------
    TypeError
        `source` is neither a report nor a ledger.
    ValueError
        `source` is a report that states no guarantee.

    Notes
    -----
    The entry contains nothing but what the report or the ledger shows: public parameters and costs.
    The number of privacy units is left out, because it is private.

    References
    ----------
    .. [1] Ghazi, Nanayakkara and Vadhan (2025). Practitioners' perspectives on a differential
       privacy deployment registry. arXiv:2509.13509.

    Examples
    --------
    >>> from sklearn_dp import FriendlyMean
    >>> from sklearn_dp.accounting import deployment_entry
    >>> report = FriendlyMean(epsilon=0.5, bounds=1.0).privacy_plan(2).report()
    >>> loss = deployment_entry(report)["deployment"]["privacy_loss"]["privacy_parameters"]
    >>> round(loss["epsilon"], 6), loss["delta"]
    (0.5, 1e-06)
    """
    if isinstance(source, PrivacyReport):
        known = _of_report(source)
    elif isinstance(source, PrivacyLedger):
        known = _of_ledger(source)
    else:
        raise TypeError(
            f"source must be a PrivacyReport or a PrivacyLedger, got {type(source).__name__}"
        )
    return {
        "url_slug": "",
        "deployment": {
            "basic": {
                "name": "",
                "data_curators": [{"data_curator_name": "", "data_curator_type": ""}],
                "description": "",
                "intended_use": "",
                "data_product_type": "",
                "data_product_region": "",
                "data_product_sector": "",
                "publication_date": "",
            },
            "dp_variant": {
                "variant_name": _variant(known["parameters"]),
                "data_domain": "Tables with " + known["domain"],
                "unprotected_quantities": "Parameters of the fits, bounds among them, and the "
                "names and the number of columns.",
            },
            "privacy_loss": {
                "privacy_unit": known["unit"],
                "privacy_unit_details": f"Adjacent data sets {known['neighbors']}.",
                "privacy_parameters": known["parameters"],
                "privacy_parameters_details": known["accounting"],
            },
            "deployment_model": {
                "model_name": "Federated" if known["federated"] else "Central",
                "trust_assumptions": (_CLIENTS if known["federated"] else _ROWS) + known["noise"],
                "release_type": known["releases"],
                "data_source_type": "",
                "access_type": "Non-interactive",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "",
                "mechanisms": known["mechanisms"] + "\n" + _LIBRARY.format(__version__),
                "composition": _COMPOSED.format(known["accounting"]),
                "post_processing": "",
                "justification": "",
            },
            "administrative": {"status": "Draft", "registry_authors": [""], "tier": 3},
        },
    }


def _variant(parameters: dict[str, float]) -> str:
    if "rho" in parameters:
        return "Zero-concentrated DP"
    return "Approximate DP" if parameters["delta"] > 0 else "Pure DP"


def _domain(relation: str, unit: str) -> str:
    """Whether the number of units is protected, by what neighbors do with one."""
    if relation == "add or remove":
        return f"any number of {unit}s; the number is protected."
    return f"a public number of {unit}s."


def _of_report(report: PrivacyReport) -> dict[str, Any]:
    if report.problems:
        raise ValueError(f"source states {report.headline}.")
    lines = {f"- {row['release']}: {row['mechanism']}" for row in report.releases}
    return {
        "parameters": {"epsilon": report.epsilon, "delta": report.delta},
        "unit": report.unit,
        "domain": _domain(report.relation, report.unit),
        "federated": report.federated,
        "noise": _NOISE[report.noise],
        "neighbors": report.neighbors,
        "accounting": f"{report.accounting}, rho = {report.rho:.6g}",
        "releases": "One release",
        "mechanisms": "\n".join(sorted(lines)),
    }


def _of_ledger(ledger: PrivacyLedger) -> dict[str, Any]:
    state = ledger.state()
    terms, charges = state.terms, state.counted
    if not charges:
        raise ValueError(
            "source: nothing has been charged to this ledger, so there is nothing to publish yet."
        )
    budget = f"a ledger that is charged before each fit and refuses more than {terms.budget}"
    failure = state.spent.get("delta_failure", 0.0)
    return {
        "parameters": {name: cost for name, cost in state.spent.items() if name != "delta_failure"},
        "unit": terms.unit,
        "domain": _domain(terms.relation, terms.unit),
        "federated": any("Federated" in charge.label for charge in charges),
        "noise": "",
        "neighbors": in_words(terms.relation, terms.unit),
        "accounting": budget + (f"; probability of a failure: {failure:.3g}" if failure else ""),
        "releases": "Many releases" if len(charges) > 1 else "One release",
        "mechanisms": "\n".join(sorted({f"- {charge.label}" for charge in charges})),
    }
