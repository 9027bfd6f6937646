"""Writes text as an HDF5 file of tokens, in the form that the program reads (data/token_set.h): the streams
/train/tokens and /test/tokens, and where their documents begin."""

import os
import re
import sys
import tempfile

import h5py
import numpy as np

from antichain.command import Parser
from antichain.error import AntichainError
from antichain.tokens.tokenizer import Tokenizer

BLOCK = 1 << 20  # characters of a file, or tokens of a stream, that are held at a time
WORD = re.compile(r"(?<=\S) (?=\S)")


def blocks(file):
    """Yields the text of a file, block by block."""
    try:
        with open(file, encoding="utf-8", newline="") as text:
            yield from iter(lambda: text.read(BLOCK), "")
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or "it is no UTF-8"
        raise AntichainError(f"can't read {file} ({why}): name files of text") from problem


def documents(file, separator):
    """Yields the documents of a file, each as an iterator of texts, which have to be taken one after the
    other. A separator ends a document, and stays its end."""
    held, source = "", blocks(file)

    def texts():
        nonlocal held
        while True:
            at = held.find(separator) + len(separator) if separator and separator in held else 0
            if at:
                text, held = held[:at], held[at:]
                yield text
                return
            keep = len(separator) - 1 if separator else 0  # may begin a separator
            if len(held) > keep:
                text, held = held[: len(held) - keep], held[len(held) - keep :]
                yield text
            block = next(source, "")
            if not block:
                text, held = held, ""
                yield text
                return
            held += block

    held = next(source, "")
    if not held:
        raise AntichainError(f"{file} is empty: leave it out")
    while held or (held := next(source, "")):
        yield texts()


def tokens_of(tokenizer, texts):
    """Yields the tokens of a document. It is parted before words, where its tokens allow that."""
    parts, held = tokenizer.parts_at_words(), ""
    for text in texts:
        held += text
        if parts and len(held) >= BLOCK:
            places = [found.start() for found in WORD.finditer(held, len(held) // 2)]
            if places:
                yield tokenizer.encode(held[: places[-1]])
                held = held[places[-1] :]
    yield tokenizer.encode(held)


def write_stream(group, stream, first, count, starts):
    """Writes `count` numbers of a file of numbers, from number `first` on, as a split."""
    tokens = group.create_dataset("tokens", (count,), stream.dtype)
    for at in range(0, count, BLOCK):
        part = min(BLOCK, count - at)
        tokens[at : at + part] = stream[first + at : first + at + part]
    inside = [start - first for start in starts if first < start < first + count]
    group.create_dataset("documents", data=np.array([0, *inside], np.int64))


def pack(files, tokenizer, out, validation=0.1, separator="", end=None):
    """Writes the set, and returns the numbers of tokens for training and for tests, and of documents. `end`
    is the token behind each document [the tokenizer's]."""
    end = tokenizer.end if end is None else tokenizer.id_of(end)
    kinds = ((1 << 8, np.uint8), (1 << 16, np.uint16), (1 << 31, np.int32))
    kind = next(kind for most, kind in kinds if tokenizer.vocabulary <= most)
    starts, total = [], 0
    folder = os.path.dirname(os.path.abspath(out))
    try:
        with tempfile.NamedTemporaryFile(dir=folder) as numbers:
            for file in files:
                for texts in documents(file, separator):
                    begin = total
                    for ids in tokens_of(tokenizer, texts):
                        numbers.write(np.array(ids, kind).tobytes())
                        total += len(ids)
                    if total > begin:
                        starts.append(begin)
                        numbers.write(np.array([] if end is None else [end], kind).tobytes())
                        total += end is not None
            numbers.flush()
            test = round(total * validation)
            train = total - test
            if train < 2 or test < 2:
                split = f"{train} for training and {test} for validation"
                raise AntichainError(f"{total} tokens give {split}: give more text")
            stream = np.memmap(numbers.name, kind, "r")
            part = f"{out}.part-{os.getpid()}"
            try:
                with h5py.File(part, "w") as file:
                    write_stream(file.create_group("train"), stream, 0, train, starts)
                    write_stream(file.create_group("test"), stream, train, test, starts)
                    file.attrs["name"] = os.path.splitext(os.path.basename(out))[0]
                    file.attrs["tokenizer"] = tokenizer.name
                    file.attrs["vocabulary"] = tokenizer.vocabulary
                    if tokenizer.mask is not None:
                        file.attrs["mask"] = tokenizer.mask
                os.replace(part, out)
            finally:
                if os.path.exists(part):
                    os.remove(part)
    except OSError as problem:
        raise AntichainError(f"can't write {out}: {problem.strerror or problem}") from problem
    return train, test, len(starts)


def main():
    parser = Parser(prog="python3 -m antichain.tokens", description=__doc__)
    parser.add_argument("--text", required=True, nargs="+", metavar="FILE", help="files of text, UTF-8")
    parser.add_argument(
        "--tokenizer",
        required=True,
        metavar="PATH",
        help="a tokenizer.json, or a folder with one, or with vocab.json and merges.txt",
    )
    parser.add_argument("--out", required=True, metavar="SET", help="the HDF5 file to write")
    parser.add_argument(
        "--validation",
        type=float,
        default=0.1,
        metavar="X",
        help="share of the tokens, the last ones, for tests [0.1]",
    )
    parser.add_argument(
        "--document-separator", default="", metavar="TEXT", help="ends a document [a file's end alone]"
    )
    parser.add_argument(
        "--end", metavar="TOKEN", help="the token behind each document [the vocabulary's, if any]"
    )
    args = parser.parse_args(sys.argv[1:])
    if not 0 < args.validation < 1:
        parser.error("--validation takes a number between 0 and 1")
    separator = args.document_separator.replace("\\n", "\n").replace("\\t", "\t")
    if os.path.exists(args.out) and not h5py.is_hdf5(args.out):
        raise AntichainError(f"{args.out} is there already and is no HDF5 file: name another file")
    tokenizer = Tokenizer(args.tokenizer)
    train, test, count = pack(args.text, tokenizer, args.out, args.validation, separator, args.end)
    print(
        f"{args.out}: {train:,} tokens for training and {test:,} for tests, documents: {count:,}, "
        f"vocabulary of {tokenizer.vocabulary:,} ({tokenizer.name})"
    )
