"""What a user's loss is of: the losses of torch.nn, and functions of outputs and targets, become loss nodes.
A loss is captured as a module is, and its calls are translated by the same table, with losses added to it.
"""

from antichain.pytorch.losses.formulas import LogProbabilities  # noqa: F401
from antichain.pytorch.losses.objective import Objective, losses_of  # noqa: F401
