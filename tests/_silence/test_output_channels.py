"""The output channels of Python that are guarded: that they exist, and what a closed patch does."""

from sklearn_dp._silence.suppress_output import CHANNELS


def test_every_way_out_that_is_guarded_exists():
    """Some names are private to the standard library: a Python without them must not go unseen."""
    assert [name for owner, name, *_ in CHANNELS if name not in vars(owner)] == []
