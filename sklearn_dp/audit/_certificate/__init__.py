"""Black-box certificates: what thousands of fits prove about a privacy claim."""

from .certificate import Certificate, Finding, certify

__all__ = ["Certificate", "Finding", "certify"]
