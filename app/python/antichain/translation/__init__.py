"""Makes nodes of graph.json from what another framework calls its operators. The tables of those operators
are elsewhere (pytorch/operators/, onnx/rows.py); here is what the rows of both have at hand.
"""

from antichain.translation.operators import CommonOperators  # noqa: F401
from antichain.translation.table import WRONG, Table, attempt, mapped  # noqa: F401
from antichain.translation.values import (  # noqa: F401
    Joined, Looked, Names, Padded, Repeated, Unsupported, Value, Widened, natural, natural_of, only,
    refuse_if, same_padding, unknown,
)

