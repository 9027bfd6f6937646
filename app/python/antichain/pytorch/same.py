"""Makes sure that a module computes one network: on other numbers of samples, when it runs again, and in
evaluation mode. For each the module is read once more, and the networks are compared node by node."""

import itertools

import torch

from antichain.error import AntichainError
from antichain.graph_operators import needed

# Nodes that evaluation leaves out, and with them what it has for all nodes.
DRAWING = ("dropout", "stochastic_depth")
OF_THE_MODE = (*DRAWING, "fixed_statistics")


def nodes_before(t, logits, without):
    """Returns the nodes that the outputs depend on, each behind what it computes whatever its name, and the
    numbers of the outputs in that list; inputs have their names. Nodes and options of the names in `without`
    are left out."""
    outputs = [getattr(value, "of", value).node for value in logits]
    weights = {own: name for name, own in t.state.items()}
    number, nodes = {}, []
    for node in needed(t.nodes, outputs, lambda n: [n.name], lambda n: n.inputs):
        if node.op in without:
            number[node.name] = number.get(node.inputs[0], node.inputs[0])
            continue
        number[node.name] = len(nodes)
        owned = {own for own in weights if own == node.name or own.rpartition(".")[0] == node.name}
        inputs = [number.get(i, i) for i in node.inputs]
        options = {key: value for key, value in node.options.items() if key not in without}
        shared = {own: weights[of] for own, of in node.shared.items()}
        nodes.append(((node.op, options, inputs, {weights[own] for own in owned}, shared), node))
    return nodes, [number.get(name, name) for name in outputs]


def difference(one, other, without=()):
    """Returns where two networks differ first, or None. Each is a Translation and its outputs."""
    (mine, ends), (theirs, other_ends) = (nodes_before(*read, without) for read in (one, other))
    for a, b in itertools.zip_longest(mine, theirs, fillvalue=(None, None)):
        if a[0] != b[0]:
            there, here = (f"{n.op} at {n.where}" if n else "nothing" for n in (b[1], a[1]))
            return f"{there} instead of {here}"
    return None if ends == other_ends else "it returns another tensor"


def check_same(module, used, examples, known, read):
    """Throws AntichainError where a module computes something else than what is known of it, a Translation
    and the outputs. `used` is a copy of the module that ran before; `read` returns these two for a module,
    its inputs by their names, and whether it trains."""
    count = len(next(iter(examples.values())))

    def wrong(module, samples, training=True):
        places = torch.arange(samples) % count
        try:
            other = read(module, {name: x[places] for name, x in examples.items()}, training)
        except AntichainError as problem:
            return str(problem)
        drawing = [n for _, n in nodes_before(*other, ())[0] if n.op in DRAWING and not training]
        if drawing:
            return f"{drawing[0].op} at {drawing[0].where} draws there, too (pass training=self.training)"
        return difference((known[0], known[1][: len(other[1])]), other, () if training else OF_THE_MODE)

    for samples in sorted({2, 2 * count + 1 if count <= 8 else count // 2} - {count}):
        again = wrong(used, samples)
        if again:
            on_others = wrong(module, samples)
            when = f"on {samples} samples than on {count}" if on_others else "when it runs again"
            raise AntichainError(f"the model computes something else {when}: {on_others or again}")
    in_evaluation = wrong(module, count, training=False)
    if in_evaluation:
        raise AntichainError(f"the model computes something else in evaluation mode: {in_evaluation}")
