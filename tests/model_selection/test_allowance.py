"""What each fit of a search may spend."""

import pytest

from sklearn_dp.model_selection import (
    Shares,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
]


@pytest.mark.parametrize("bad", ["shares", "score"])
def test_shares_are_checked(bad):
    with pytest.raises(ValueError, match="between 0 and 1"):
        Shares(**{"search" if bad == "shares" else "score": 1.5})
