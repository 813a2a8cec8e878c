"""For programs that tests start: the kernel without the rest of the package.

To import scikit-learn and all estimators takes seconds, and the tests of processes start dozens.
"""

from pathlib import Path

import sklearn_dp

__all__ = ["KERNEL_ALONE"]

KERNEL_ALONE = f"""
import sys, types
package = sys.modules["sklearn_dp"] = types.ModuleType("sklearn_dp")
package.__path__ = [{str(Path(sklearn_dp.__file__).parent)!r}]
"""
"""What a program begins with: an empty package that finds its modules."""
