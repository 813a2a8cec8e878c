"""What all private steps of a fitted pipeline have released and cost together."""

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ._compositions import private_steps
from ._privacy._accounting import zcdp_epsilon
from ._privacy._report import PrivacyReport
from ._privacy._rounding import sum_up

__all__ = ["privacy_report"]


def privacy_report(estimator: BaseEstimator) -> PrivacyReport:
    """The guarantee of a fitted pipeline as a whole, and every release of its steps.

    Parameters
    ----------
    estimator : estimator
        Fitted: a ``Pipeline``, ``FeatureUnion`` or ``ColumnTransformer`` with private steps, such
        as :func:`privatize` makes, or a private estimator.

    Returns
    -------
    report : PrivacyReport
        The report of one fit. The name of each release is preceded by that of its step.

    Raises
    ------
    ValueError
        If no step is private.
    NotFittedError
        If a private step has not been fitted.

    Notes
    -----
    If budgets are in rho, as when `privatize` divides an epsilon, costs add up in zCDP, and the
    total is the requested epsilon. Otherwise epsilons and deltas add up. What non-private steps
    learn from the rows is in no report. Where all steps were charged to the units of one value
    (:meth:`PrivacyLedger.disjoint`), `payers` names them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_dp import privacy_report, privatize
    >>> X = np.random.default_rng(0).normal(size=(2000, 4))
    >>> pipeline = privatize(make_pipeline(PCA(2), KMeans(1)), epsilon=1.0).fit(X)
    >>> privacy_report(pipeline).headline.split(" when ")[0]
    '(1, 1e-06)-DP'
    """
    steps = list(private_steps(estimator, fitted=True))
    if not steps:
        raise ValueError("estimator: no step of it is private.")
    for _, step in steps:
        check_is_fitted(step)
    reports = [step.privacy_report_ for _, step in steps]
    first = reports[0]
    if len(reports) == 1:
        return first
    rho, delta = (sum_up([getattr(each, cost) for each in reports]) for cost in ("rho", "delta"))
    epsilon, words = sum_up([each.epsilon for each in reports]), "basic composition"
    if all(step.rho is not None for _, step in steps):
        # Step i is (rho_i, f_i)-zCDP with f_i <= delta_i, so all are (rho, delta)-zCDP together
        # (`_ledger_terms`), which is (epsilon, 2 delta)-DP.
        epsilon, delta, words = zcdp_epsilon(rho, delta), 2 * delta, "zCDP (tight conversion)"
    return PrivacyReport(
        epsilon=epsilon,
        delta=min(delta, 1.0),
        rho=rho,
        spent_rho=sum_up([each.spent_rho for each in reports]),
        accounting=words,
        unit=first.unit,
        noise="seeded" if any(each.noise == "seeded" for each in reports) else first.noise,
        releases=tuple(
            {**line, "release": f"{name}/{line['release']}"}
            for (name, _), report in zip(steps, reports, strict=True)
            for line in report.releases
        ),
        notes=tuple(dict.fromkeys(note for each in reports for note in each.notes)),
        relation=first.relation,
        payers=first.payers if len({each.payers for each in reports}) == 1 else "",
        federated=any(each.federated for each in reports),
    )
