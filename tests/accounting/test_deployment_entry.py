"""Entries of the DP Deployments Registry, from reports and ledgers."""

import json

import numpy as np
import pytest

from sklearn_dp import FederatedDPKMeans, FriendlyMean, PrivacyBudget, PrivacyLedger
from sklearn_dp._costs.ledger_terms import LedgerCharge
from sklearn_dp.accounting import deployment_entry

# What the registry's schema allows (commit 057e5d8 of its data): the fields of each section, and
# the words of its enumerations. It refuses any other field.
FIELDS = {
    "basic": "name data_curators description intended_use data_product_type data_product_region "
    "data_product_sector publication_date",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details number_of_privacy_units privacy_parameters "
    "privacy_parameters_details",
    "deployment_model": "model_name model_name_details trust_assumptions actors release_type "
    "release_type_details data_source_type data_source_type_details access_type "
    "access_type_details",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms composition "
    "post_processing justification utility additional_information",
    "administrative": "evidence_sources status registry_authors tier",
}
WORDS = {
    "variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
    "model_name": {"Local", "Central", "Shuffle", "Federated", "Varies"},
    "release_type": {"One release", "Many releases"},
    "access_type": {"Interactive", "Non-interactive"},
    "status": {"Draft"},
}


def checked(source):
    """The sections of an entry that JSON, and so YAML, can hold; they fit the schema."""
    entry = json.loads(json.dumps(deployment_entry(source), allow_nan=False))
    assert set(entry) == {"url_slug", "deployment"}
    sections = entry["deployment"]
    assert set(sections) == set(FIELDS)
    for name, section in sections.items():
        assert set(section) <= set(FIELDS[name].split())
        for field, value in section.items():
            assert value in WORDS.get(field, {value}) if isinstance(value, str) else value
    assert set(sections["privacy_loss"]["privacy_parameters"]) <= {"epsilon", "delta", "rho"}
    return sections


@pytest.fixture
def ledger():
    return PrivacyLedger(PrivacyBudget(epsilon=3.0, delta=1e-5))


def fitted(ledger, **options):
    X = np.random.default_rng(0).normal(size=(500, 2))
    return FriendlyMean(bounds=5.0, ledger=ledger, **options).fit(X)


def test_a_report_tells_its_guarantee_and_its_releases(ledger):
    report = fitted(ledger).privacy_report_
    sections = checked(report)
    loss = sections["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": report.epsilon, "delta": report.delta}
    assert loss["privacy_unit"] == "row" and "add or remove one row" in loss["privacy_unit_details"]
    assert "number_of_privacy_units" not in loss  # it is private
    assert sections["deployment_model"]["release_type"] == "One release"
    for line in report.releases:
        assert line["release"] in sections["implementation"]["mechanisms"]


def test_a_ledger_tells_its_total(ledger):
    for _ in range(2):
        fitted(ledger)
    sections = checked(ledger)
    assert sections["privacy_loss"]["privacy_parameters"] == ledger.spent
    assert sections["dp_variant"]["variant_name"] == "Approximate DP"
    assert sections["deployment_model"]["release_type"] == "Many releases"
    assert "FriendlyMean" in sections["implementation"]["mechanisms"]


@pytest.mark.parametrize(
    ("relation", "words"),
    [("add or remove", "any number of rows; the number is protected"), ("replace", "a public num")],
)
def test_whether_the_number_of_rows_is_protected_is_said_by_the_relation(relation, words):
    budget = PrivacyBudget(epsilon=3.0, delta=1e-5)
    ledger = PrivacyLedger(budget, relation=relation)
    model = FederatedDPKMeans(2, bounds=1.0, relation=relation, ledger=ledger)
    plan = model.privacy_plan(2).report()
    ledger.charge(LedgerCharge.of(model.privacy_plan(2), "FederatedDPKMeans"))
    for source in (plan, ledger):
        sections = checked(source)
        assert words in sections["dp_variant"]["data_domain"]
        assert sections["deployment_model"]["model_name"] == "Federated"
        assert "Clients keep their rows" in sections["deployment_model"]["trust_assumptions"]
    assert "no fit has been made" in checked(plan)["deployment_model"]["trust_assumptions"]


def test_noise_of_a_seed_is_no_guarantee(ledger):
    for seed, told in ((None, False), (0, True)):
        report = fitted(ledger, random_state=seed, epsilon=0.5).privacy_report_
        model = checked(report)["deployment_model"]
        assert ("seed" in model["trust_assumptions"]) is told and model["model_name"] == "Central"
