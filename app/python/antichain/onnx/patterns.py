"""A pattern is a tree of operators, written as "Mul(x, Sigmoid(x))".

A small letter stands for any tensor, a capital one for a constant, and a number for a constant of that value;
a letter means the same wherever it stands. "d=Sub(x, y)" gives a name to what matches. Factors and terms may
stand in any order, and Mul(a, b, c) is any product of the three.
"""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Pattern:
    op: str = ""  # "" for a letter or a number
    letter: str = ""
    number: float = None
    inputs: tuple = ()


def pattern_of(text):
    """Reads a pattern of ours; the text has to be right."""
    tokens = re.findall(r"\w=|[A-Za-z]+|[\d.]+|[()]", text)[::-1]

    def take():
        letter = tokens.pop()[0] if tokens[-1].endswith("=") else ""
        word, inputs = tokens.pop(), []
        if tokens and tokens[-1] == "(":
            tokens.pop()
            while tokens[-1] != ")":
                inputs.append(take())
            tokens.pop()
        if word[0].isdigit():
            return Pattern(number=float(word))
        return Pattern(letter=word) if len(word) == 1 else Pattern(word, letter, None, tuple(inputs))

    return take()


class Match:
    """What the letters of a pattern stand for, and which nodes matched."""

    def __init__(self, letters=(), nodes=()):
        self.letters, self.nodes = dict(letters), list(nodes)

    def all(self, op):
        return [node for node in self.nodes if node.op == op]

    def bind(self, letter, value):
        return not letter or self.letters.setdefault(letter, value) == value


class Matcher:
    """`makers` has the node that makes each tensor, and may grow."""

    def __init__(self, makers, constants):
        self.makers, self.constants = makers, constants

    def value(self, p, value, match):
        """Says whether the tensor of that name is what the pattern describes, and adds to the match."""
        if p.number is not None:
            number = self.constants.find(value).number if value in self.constants else None
            # Constants that were rounded to float16 are read, too.
            return number is not None and abs(number - p.number) <= 1e-3 * abs(p.number)
        if not p.op:
            return p.letter.isupper() == (value in self.constants) and match.bind(p.letter, value)
        maker = self.makers.get(value)
        return maker is not None and self.node(p, maker, match) and match.bind(p.letter, value)

    def node(self, p, node, match):
        if node.op != p.op:
            return False
        match.nodes.append(node)
        if p.op in ("Add", "Mul") and len(node.inputs) == 2:
            return self._in_any_order(p, p.inputs, node, match)
        # The axes of a mean may be an input.
        if len(p.inputs) != (1 if p.op == "ReduceMean" else len(node.inputs)):
            return False
        return all(self.value(part, value, match) for part, value in zip(p.inputs, node.inputs))

    def _in_any_order(self, p, parts, node, match):
        """Divides parts of the pattern in all ways among the two inputs of the node."""
        for which in range((1 << len(parts)) - 2, 0, -1):
            sides = [[part for i, part in enumerate(parts) if which >> i & 1 == side] for side in (1, 0)]
            attempt = Match(match.letters, match.nodes)
            if all(self._some(p, side, value, attempt) for side, value in zip(sides, node.inputs)):
                match.letters, match.nodes = attempt.letters, attempt.nodes
                return True
        return False

    def _some(self, p, parts, value, match):
        if len(parts) == 1:
            return self.value(parts[0], value, match)
        maker = self.makers.get(value)
        if maker is None or maker.op != p.op or len(maker.inputs) != 2:
            return False
        return self._in_any_order(p, parts, maker, match)
