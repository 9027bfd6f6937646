#!/usr/bin/env python3
"""Replays measured steps with messages that take no time.

    tests/benchmarks/replay_trace.py TRACE…        files of `antichain train --trace`

Each action keeps its measured duration and its place in its rank's order. It begins when the action before it
has ended, and so has what it needs: a forward needs the forward of the stage before, and a backward needs the
backward of the stage after. So it is for stages of which each sends to the next. A replay that is as long as
the step says that waiting comes from the durations of actions, and not from messages.
"""
import argparse, json, re


def read(file):
    """Returns the ranks' actions as (stage, letter, micro-batch, duration in ms), and the step in ms."""
    with open(file) as text:
        events = [event for event in json.load(text)["traceEvents"] if event["ph"] == "X"]
    ranks = {}
    for event in sorted(events, key=lambda event: event["ts"]):
        stage, letter, microbatch = re.match(r"(\d+)([A-Z])(\d*)", event["args"]["action"]).groups()
        if letter not in "RS":
            ranks.setdefault(event["tid"], []).append((int(stage), letter, microbatch, event["dur"] / 1e3))
    begin = min(event["ts"] for event in events)
    return list(ranks.values()), (max(event["ts"] + event["dur"] for event in events) - begin) / 1e3


def needed(stage, letter, microbatch, last):
    """Returns what must have ended before the action, or None."""
    if letter == "F" and stage > 0:
        return ("F", stage - 1, microbatch)
    if letter in "BI" and stage < last:
        return ("B", stage + 1, microbatch)
    return None


def replay(ranks):
    """Returns the duration of the step in ms."""
    last = max(action[0] for actions in ranks for action in actions)
    places, now, ended = [0] * len(ranks), [0.0] * len(ranks), {}
    while any(place < len(actions) for place, actions in zip(places, ranks)):
        before = list(places)
        for rank, actions in enumerate(ranks):
            while places[rank] < len(actions):
                stage, letter, microbatch, duration = actions[places[rank]]
                need = needed(stage, letter, microbatch, last)
                if need and need not in ended:
                    break
                now[rank] = max(now[rank], ended.get(need, 0)) + duration
                if letter in "FBI":
                    ended["F" if letter == "F" else "B", stage, microbatch] = now[rank]
                places[rank] += 1
        if places == before:
            raise SystemExit("the actions of this trace wait for each other: is its network no chain of stages?")
    return max(now)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+")
    for file in parser.parse_args().traces:
        ranks, step = read(file)
        replayed = replay(ranks)
        print(f"{file}: step {step:.2f} ms, replayed {replayed:.2f} ms, {replayed / step - 1:+.1%}")


main()
