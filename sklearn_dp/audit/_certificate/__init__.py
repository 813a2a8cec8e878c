"""Black-box certificates: what thousands of fits prove about a privacy claim.

Start at :mod:`certificate`. `cases` has pairs of data sets, `runs` fits them, `shown` turns what a
fit shows into numbers and words, `distinguishers` learns to tell the two data sets apart,
`likelihood` is the best test for one who sees all releases, and `claims` turns counts of alarms
into lower bounds.
"""

from .certificate import Certificate, Finding, certify

__all__ = ["Certificate", "Finding", "certify"]
