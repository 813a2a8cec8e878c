"""Errors and warnings of the package.

None of them ever quotes a value of the data: messages are built from parameters, public facts and
released values only.
"""

__all__ = [
    "BudgetExceededError",
    "LedgerError",
    "PrivacyWarning",
    "SeededNoiseWarning",
    "UtilityWarning",
]


class BudgetExceededError(RuntimeError):
    """A charge would take a session or a ledger past what it is allowed to spend.

    It is raised before anything is spent and before any data are read.
    """


class LedgerError(ValueError):
    """The `ledger` given cannot be used.

    No such file, not a ledger, another version, or another unit or neighbouring relation.
    """


class PrivacyWarning(UserWarning):
    """The stated guarantee holds only under a condition that the caller should know about."""


class SeededNoiseWarning(PrivacyWarning):
    """The noise comes from a seed: whoever knows or guesses the seed can remove the noise."""


class UtilityWarning(UserWarning):
    """The answer is private but of little use, judged from released values only."""
