"""A whole fit inside another one, paid at once.

The event has no noise of its own: what the inner fit releases are events of other kinds, marked
"nested". They are compared and tested as all others are, but not added to the total, because this
event has paid for them. That they cost no more than it says is checked where the inner fit spends:
its accounts refuse more than its plan holds. So the cost is taken as told here, and the recount
adds up whether all inner fits together have released no more than was paid for them.

Two neighbors must pay the same for the same kind of fit. Its plan depends on public numbers only,
and the replay compares the public part of the event.
"""

from ._law import Law, keep_recorded, no_claims, no_numbers

# Nothing is released by paying.
LAWS = {"fit": Law(keep_recorded, no_numbers, no_claims, rho=lambda event: event.cost)}
