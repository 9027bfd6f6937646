"""What each function of PyTorch becomes: the rows of all families."""

from antichain.pytorch.operators import elementwise, images, norms, products, reductions, shapes  # noqa: F401
from antichain.pytorch.operators.table import OPERATORS, ROWS  # noqa: F401
