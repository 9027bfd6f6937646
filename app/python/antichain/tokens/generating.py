"""Goes on with a text: a tokenizer makes numbers of the prompt for `antichain generate`, and text of what
that generates. All other options are those of the program, but for --prompt-tokens and --json."""

import json
import sys

from antichain import program
from antichain.command import USAGE, Parser
from antichain.error import AntichainError
from antichain.tokens.tokenizer import Tokenizer


def generate(tokenizer, prompt, words):
    """Returns the prompt with what follows. `words` are options of the program."""
    ids = ",".join(map(str, tokenizer.encode(prompt)))
    if not ids:
        raise AntichainError("the prompt has no token: give a text to go on with", USAGE)
    command = [program.find(), "generate", f"--prompt-tokens={ids}", *words, "--json=-"]
    printed, _ = program.call(command, program.print_warning)
    said = json.loads("".join(printed))
    return tokenizer.decode([*said["prompt"], *said["tokens"]])


def main():
    parser = Parser(prog="python3 -m antichain.generate", description=__doc__, allow_abbrev=False)
    as_of = "as of python3 -m antichain.tokens"
    parser.add_argument("--tokenizer", required=True, metavar="PATH", help=as_of)
    parser.add_argument("--prompt", required=True, metavar="TEXT", help="what to go on with")
    args, words = parser.parse_known_args(sys.argv[1:])
    if taken := {"--prompt-tokens", "--json"} & {word.partition("=")[0] for word in words}:
        parser.error(f"{taken.pop()} is an option of antichain generate itself")
    print(generate(Tokenizer(args.tokenizer), args.prompt, words))
