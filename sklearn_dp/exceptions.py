"""Errors and warnings of the package.

None of them ever quotes a value of the data: messages are built from parameters, public facts and
released values only.
"""

__all__ = [
    "BudgetExceededError", "ConversionWarning", "ExactStatisticsWarning", "LedgerError",
    "PartError", "PrivacyWarning", "SeededNoiseWarning", "UtilityWarning",
]  # fmt: skip


class BudgetExceededError(RuntimeError):
    """A charge would exceed what a session or a ledger is allowed to spend.

    It is raised before anything is spent and before any data are read. A fit with a smaller epsilon
    or a smaller delta may still be accepted. Charges are never refunded.

    Parameters
    ----------
    message : str
        The amounts in it are of budgets, which are public.
    asked, left : dict of str to float, optional
        What the charge needs, and what remains in the ledger, of each cost that it counts:
        "epsilon" and "delta", or "rho" and "delta_failure".

    Attributes
    ----------
    asked, left : dict of str to float
        As above.
    """

    def __init__(
        self,
        message: str = "",
        *,
        asked: dict[str, float] | None = None,
        left: dict[str, float] | None = None,
    ) -> None:
        super().__init__(message)
        self.asked = asked or {}
        self.left = left or {}


class LedgerError(ValueError):
    """The `ledger` given cannot be used.

    The file does not exist, is locked, read-only, damaged, not a ledger or not the one that was
    there before; or the ledger is for another unit or neighboring relation. Nothing was spent.
    Ledgers must be created explicitly (``sklearn-dp ledger create``): if a path that does not exist
    created a ledger, a typing error would grant a fresh budget.
    """


class PartError(ValueError):
    """A part of a table could not be read, or was lost. The fit has ended and stays charged.

    It names the number of the part and the type of the error, and nothing about the data.
    """


class ConversionWarning(UserWarning):
    """A private counterpart does not support all settings of the original estimator."""


class PrivacyWarning(UserWarning):
    """The stated guarantee holds only under a condition that the caller should know about.

    The condition concerns how a program calls the package, never its data, so this warning reveals
    nothing about the data.
    """


class ExactStatisticsWarning(PrivacyWarning):
    """The recording is not private: it contains exact statistics of the data, before noise.

    Given by :func:`~sklearn_dp.audit.record_releases` and
    :func:`~sklearn_dp.audit.replay_releases`, which are for audits. Neither a recording nor what a
    replayed fit shows may be published.
    """


class SeededNoiseWarning(PrivacyWarning):
    """The noise comes from a seed: anyone who knows or guesses the seed can remove the noise.

    Every fit with a ``random_state`` gives this warning, even if it is a NumPy generator, whose
    state another program may know. Use it for tests and demonstrations only, not for real data.
    """


class UtilityWarning(UserWarning):
    """Some or all of the results are private but of no use, judging by released values only.

    The `messages_` of the estimator have the same text. A larger epsilon, more rows or public
    bounds help; fitting again costs the budget again.
    """
