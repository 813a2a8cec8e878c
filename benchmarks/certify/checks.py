"""The contract of estimators, and what only this package has to prove: every check of an audit."""

from sklearn_dp.audit._checks import CHECKS

from .drawn import check_drawn_data
from .inherited import (
    check_kernel_noise,
    check_missing_groups_are_refused,
    check_replay_of_hard_groups,
    check_replay_of_methods,
)
from .recount import check_total_is_right

OF_THIS_PACKAGE = (
    check_total_is_right,
    check_replay_of_hard_groups,
    check_replay_of_methods,
    check_missing_groups_are_refused,
    check_kernel_noise,
    check_drawn_data,
)
EVERY_CHECK = (*CHECKS, *OF_THIS_PACKAGE)
