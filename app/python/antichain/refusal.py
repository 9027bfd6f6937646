"""One sentence about everything of a model that is not supported, so that a user learns it at once."""

import collections
import re

MOST = 12  # things in a sentence


def grouped(problems):
    """Returns a clause for each kind of thing, in the order in which they come, from (kind, said, place):
    equal things at several places are counted. What differs by its numbers is of one kind."""
    first, places = {}, collections.defaultdict(set)
    for kind, said, place in problems:
        kind = re.sub(r"\d+", "0", kind)
        first.setdefault(kind, said)
        places[kind].add(place)
    more = {kind: len(there) - 1 for kind, there in places.items()}
    return [said + (f" and {more[kind]} more" if more[kind] else "") for kind, said in first.items()]


def not_supported(clauses):
    """Returns "CLAUSE; CLAUSE are not supported"."""
    shown = clauses[:MOST]
    if len(clauses) > MOST:
        shown.append(f"{len(clauses) - MOST} things more")
    verb = "is" if len(shown) == 1 and " more" not in shown[0][-12:] else "are"
    return f"{'; '.join(shown)} {verb} not supported"
