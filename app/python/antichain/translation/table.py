"""The rows of an operator table, and what runs them."""

import inspect

from antichain.translation.values import Joined, Unsupported, refuse_if

WRONG = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # what odd options do to a row

# Operators that compute each position by itself, so that positions may be joined.
BY_POSITION = set(
    "add addmm div dropout gelu layer_norm linear mul relu rms_norm sigmoid silu softmax sub tanh".split()
)


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
    argument is a computed tensor, unless the row takes what it gets (`raw`)."""

    def __init__(self):
        super().__init__()
        self.raw = set()

    def row(self, *names, raw=False):
        def enter(function):
            self.update(dict.fromkeys(names, function))
            self.raw.update(names if raw else ())
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
        joined = {x.axes for x in (*args, *keywords.values()) if isinstance(x, Joined)}
        if len(joined) == 1 and name in BY_POSITION:
            args, keywords = separated(args), dict(zip(keywords, separated(keywords.values())))
            return Joined(self.make(t, name, args, keywords), joined.pop())
        try:
            if args and name not in self.raw:
                args = [t.tensor(args[0]), *args[1:]]
            return self[name](t, *args, **keywords)
        except WRONG as problem:
            raise Unsupported(f"'{name}' with these shapes and options ({problem})") from problem


def separated(values):
    """Returns values, those of joined positions as they were before."""
    return [x.of if isinstance(x, Joined) else x for x in values]
