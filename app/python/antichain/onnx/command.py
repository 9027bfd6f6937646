"""The command line of python3 -m antichain.onnx."""

import pathlib
import tempfile

from antichain import program
from antichain.command import Parser
from antichain.error import AntichainError
from antichain.folder import GRAPH
from antichain.onnx.exporting import export_onnx
from antichain.onnx.importing import import_onnx

def export_run(run, words, file):
    """Exports the weights that `antichain export WORDS --init RUN` takes, in the network that the words
    name."""
    with tempfile.TemporaryDirectory() as held:
        folder = pathlib.Path(held) / "run.antichain"
        program.run("export", *words, init=run, out=folder, listener=program.print_warning)
        return export_onnx(folder, file)


def main():
    parser = Parser(prog="python3 -m antichain.onnx", description="Networks from and to ONNX files.")
    commands = parser.add_subparsers(dest="command", required=True)
    to_us = commands.add_parser("import", help="make a folder NAME.antichain of an ONNX file")
    to_us.add_argument("file", metavar="FILE.onnx")
    to_us.add_argument("folder", metavar="OUT.antichain")
    to_onnx = commands.add_parser(
        "export",
        help="make an ONNX file of a network and its weights",
        description="Makes an ONNX file of a folder NAME.antichain. Where RUN is weights or a folder of "
        "checkpoints, further options name the network, as `antichain export` has them: --model or --graph, "
        "--form, …",
    )
    to_onnx.add_argument("run", metavar="RUN")
    to_onnx.add_argument("file", metavar="OUT.onnx")
    given, words = parser.parse_known_args()
    for name, value in vars(given).items():
        if not value:
            parser.error(f"the {name} has an empty name (is a variable of your script not set?)")
    if given.command == "import":
        if words:
            parser.error(f"import takes no {words[0]}")
        import_onnx(given.file, given.folder)
        print(f"{given.folder}: the network of {given.file}")
        return
    if not given.file.endswith(".onnx"):
        parser.error(f"export writes OUT.onnx, named right behind RUN, and not {given.file}")
    if (pathlib.Path(given.run) / GRAPH).exists():
        if words:
            parser.error(f"{given.run} is a network with its weights, so {words[0]} has no meaning")
        count = export_onnx(given.run, given.file)
    elif words:
        count = export_run(given.run, words, given.file)
    else:
        raise AntichainError(
            f"{given.run} is no folder NAME.antichain: where it has weights, name their network by --model "
            "or --graph"
        )
    print(f"{given.file}: the network of {given.run}, with {count} tensors")
