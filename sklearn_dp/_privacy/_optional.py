"""Libraries that are not always there: an error that says how to get them."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def extra(name: str) -> Iterator[None]:
    """A block of imports: what is missing is named, with the extra of this package to install.

    >>> with extra("plot"):
    ...     import no_such_library
    Traceback (most recent call last):
    ImportError: no_such_library is not installed: pip install "sklearn-dp[plot]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or name).partition(".")[0]
        raise ImportError(
            f'{missing} is not installed: pip install "sklearn-dp[{name}]"', name=missing
        ) from error
