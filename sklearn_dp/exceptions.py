"""Errors and warnings of the package.

None of them ever quotes a value of the data: messages are built from parameters, public facts and
released values only.
"""

__all__ = [
    "BudgetExceededError",
    "ConversionWarning",
    "ExactStatisticsWarning",
    "LedgerError",
    "PartError",
    "PrivacyWarning",
    "SeededNoiseWarning",
    "UtilityWarning",
]


class BudgetExceededError(RuntimeError):
    """A charge would take a session or a ledger past what it is allowed to spend.

    It is raised before anything is spent and before any data are read.

    A fit of a smaller epsilon, or of a smaller delta, may still be admitted. Nothing that was
    charged is ever given back.

    Parameters
    ----------
    message : str
        The amounts in it are of budgets, which are public.
    asked, left : dict of str to float, optional
        What the charge needs, and what the ledger still holds, of each cost that it counts:
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

    No such file, not a ledger, another version, or another unit or neighbouring relation. Nothing
    was spent. Ledgers are made on purpose only (``python -m sklearn_dp.ledger create``): if a path
    that does not exist were a fresh ledger, a slip of the pen would be a fresh budget.
    """


class PartError(ValueError):
    """A part of a table could not be read, or was lost: the fit has ended, and was paid for.

    It tells the number of the part and the type of the error, and nothing of the data.
    """


class ConversionWarning(UserWarning):
    """A private twin does not do all that the estimator it is made from was told."""


class PrivacyWarning(UserWarning):
    """The stated guarantee holds only under a condition that the caller should know about.

    The condition is about how a program calls the package and never about its data, so whether this
    warning is given tells nothing about them.
    """


class ExactStatisticsWarning(PrivacyWarning):
    """What is being recorded is not private: exact statistics of the data, before noise.

    Given by :func:`~sklearn_dp.audit.record_releases` and
    :func:`~sklearn_dp.audit.replay_releases`, which are for audits. Neither a recording nor what a
    replayed fit shows may be published.
    """


class SeededNoiseWarning(PrivacyWarning):
    """The noise comes from a seed: whoever knows or guesses the seed can remove the noise.

    Given by each fit with a ``random_state``, also for one of NumPy's generators, whose state
    another program may know. For tests and demonstrations; leave it out for real data.
    """


class UtilityWarning(UserWarning):
    """The answer is private but of little use, judged from released values only.

    The same words are in the `status_` of the estimator. A larger epsilon, more rows or public
    bounds help; to fit once more costs its budget once more.
    """
