"""The rows of an operator table, and what runs them."""

import inspect

from antichain.translation.values import Joined, Padded, Repeated, Unsupported, Value, Widened, refuse_if

WRONG = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # what odd options do to a row

# What rows call the axes that they are given.
AXES = ("axis", "dim", "dims")
# How many of the last axes rows take without being told, among which the samples may not be.
LAST = {
    **dict.fromkeys("layer_norm linear rms_norm".split(), 1),
    **dict.fromkeys("addmm attention baddbmm bmm matmul mm mv rotary tril triu".split(), 2),
    **dict.fromkeys("constant_pad_nd pad scaled_dot_product_attention".split(), 6),
}


def attempt(steps, make, stand_in):
    """Makes nodes of all steps. Returns those that can't be made, each with what is not supported, so that
    one refusal has all of them. `stand_in` enters something for their results, if it knows of any: what
    is behind one of which it knows nothing makes no sentence of its own ("")."""
    problems = []
    for step in steps:
        try:
            make(step)
        except Unsupported as problem:
            stand_in(step)
            if str(problem):
                problems.append((step, str(problem)))
    return problems


class Table(dict):
    """The rows by the names of a framework's operators. A row is a function of a Shaping and of what the
    framework gives its operator, by the names that it has there. It returns a Value, or several. Its first
    argument is a computed tensor, unless the row takes what it gets (`raw`).

    Of tensors whose samples are joined with other axes (Joined), a row gets them with these axes apart, as
    first axes that it knows nothing of, and what it returns is joined again; unless it takes such tensors as
    they are (`joined`), or can't have axes that it does not know (`samples`)."""

    def __init__(self):
        super().__init__()
        self.raw, self.joined, self.samples = set(), set(), set()

    def copy(self):
        other = Table()
        other.update(self)
        other.raw, other.joined, other.samples = set(self.raw), set(self.joined), set(self.samples)
        return other

    def row(self, *names, raw=False, joined=False, samples=False):
        def enter(function):
            self.update(dict.fromkeys(names, function))
            for kind, is_it in ((self.raw, raw), (self.joined, joined), (self.samples, samples)):
                (kind.update if is_it else kind.difference_update)(names)
            return function

        return enter

    def known(self, name, keywords):
        """Returns those of the arguments that the row has."""
        parameters = inspect.signature(self[name]).parameters
        takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        return {key: value for key, value in keywords.items() if takes_all or key in parameters}

    def make(self, t, name, args, keywords):
        """Returns what the row makes of arguments. Throws Unsupported."""
        refuse_if(name not in self, f"'{name}'")
        try:
            joined = joined_in((args, keywords))
            if len({x.axes for x in joined}) > 1:  # the same axes, perhaps, but not in the same parts
                args, keywords = mapped(t.joined_of_few, (args, keywords))
                joined = joined_in((args, keywords))
            if joined and name not in self.joined:
                refuse_if(name in self.samples, f"'{name}' of {joined[0]},")
                different = len({x.axes for x in joined}) > 1
                refuse_if(different, f"'{name}' of tensors of which samples are joined with different axes,")
                last = joined[0].at and joined[0].at >= joined[0].rank - LAST.get(name, 0)
                why = "(samples that see each other can't be cut into micro-batches)"
                refuse_if(last, f"'{name}' of a tensor with the samples among its last axes {why}")
                return self.make_apart(t, name, joined[0], args, keywords)
            if args and name not in self.raw and not joined:
                args = [t.tensor(args[0]), *args[1:]]
            return self[name](t, *args, **keywords)
        except Unsupported:
            for change in (t.joined_constant, t.samples_first):
                given = mapped(change, (args, keywords))
                if len(joined_in(given)) > len(joined):
                    return self.make(t, name, *given)
            raise
        except WRONG as problem:
            raise Unsupported(f"'{name}' with these shapes and options ({problem})") from problem

    def make_apart(self, t, name, like, args, keywords):
        """Returns what the row makes of tensors that are joined as `like` is."""
        given = inspect.signature(self[name]).bind(t, *args, **keywords)
        given.apply_defaults()
        left_out = set()

        def apart(x):
            whole = x.of if isinstance(x, Widened) else x
            beside = isinstance(whole, Value) and whole.sampled
            refuse_if(beside, f"a tensor {getattr(x, 'shape', ())} beside {like},")
            shape = getattr(x, "shape", ())
            if like.at and not isinstance(x, Joined) and len(shape) == like.rank and shape[like.at] == 1:
                rest = (axis for axis in range(like.rank) if axis != like.at)
                return t.tensor(x).permuted((like.at, *rest))
            return x.of if isinstance(x, Joined) else x

        def moved(axes):
            if isinstance(axes, (tuple, list)):
                return type(axes)(moved(axis) for axis in axes)
            if isinstance(axes, bool) or not isinstance(axes, int):
                return axes
            refuse_if(not -like.rank <= axes < like.rank, f"axis {axes} of a tensor of {like.rank} axes")
            left_out.add(axes % like.rank)
            return like.apart(axes % like.rank)

        def changed(key, value):
            if key == "named":  # more arguments by name
                return {own: changed(own, x) for own, x in value.items()}
            return moved(value) if key in AXES else mapped(apart, value)

        given.arguments = {
            key: value if value is t else changed(key, value) for key, value in given.arguments.items()
        }
        if args and name not in self.raw:
            first = [*given.arguments][1]
            given.arguments[first] = t.tensor(given.arguments[first])
        with t.apart_as(like):
            made = self[name](*given.args, **given.kwargs)

        def joined(x):
            x = t.tensor(x) if isinstance(x, (Padded, Widened, Repeated)) else x
            if not hasattr(x, "rank"):  # a loss
                return x
            fewer = like.rank - (x.rank - len(like.lead) + 1)
            at = like.at - sum(axis < like.at for axis in left_out) * (fewer > 0)
            return t.joined(x, like.lead, at)

        return mapped(joined, made)


def mapped(change, value):
    """Returns `value` with change(x) in place of everything in it that is no tuple, list or dict."""
    if type(value) in (tuple, list):
        return type(value)(mapped(change, part) for part in value)
    if isinstance(value, dict):
        return {key: mapped(change, part) for key, part in value.items()}
    return change(value)


def joined_in(value):
    """Returns the tensors in a value whose samples are joined with other axes."""
    found = []
    mapped(lambda x: found.append(x) if isinstance(x, Joined) else None, value)
    return found
