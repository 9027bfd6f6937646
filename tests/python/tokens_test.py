"""Sets of tokens that a tokenizer makes, as the program reads them."""

import itertools
import json
import subprocess
import sys
import unittest

import h5py
import numpy
import tokenizers

import antichain
from antichain.tokens import packing
from antichain.tokens.tokenizer import Tokenizer
from in_a_folder import InAFolder

END = "<|endoftext|>"
TEXT = "In the beginning God created the heaven and the earth.\n\nAnd the earth was without form, and void;\n"
# Its logits depend on a token and on the one before.
NETWORK = {
    "format": "antichain graph",
    "version": 1,
    "model": "two_tokens",
    "inputs": [
        {"name": "tokens", "shape": [8], "dtype": "float32"},
        {"name": "labels", "shape": [8], "dtype": "int32"},
    ],
    "nodes": [
        {"name": "wave", "op": "elementwise", "inputs": ["tokens"], "options": {"steps": ["sin x0"]}},
        {"name": "line", "op": "reshape", "inputs": ["wave"], "options": {"shape": [1, 1, 8]}},
        {
            "name": "pair",
            "op": "conv2d",
            "inputs": ["line"],
            "options": {"out": 300, "kernel": [1, 2], "pad": {"before": [0, 1], "after": [0, 0]}},
        },
        {"name": "logits", "op": "reshape", "inputs": ["pair"], "options": {"shape": [300, 8]}},
        {"name": "loss", "op": "softmax_cross_entropy", "inputs": ["logits", "labels"]},
    ],
}


class TokensTest(InAFolder):
    def setUp(self):
        super().setUp()
        trained = tokenizers.ByteLevelBPETokenizer()
        how = {"vocab_size": 300, "min_frequency": 1, "special_tokens": [END], "show_progress": False}
        trained.train_from_iterator([TEXT] * 8, **how)
        (self.folder / "bpe").mkdir()
        trained.save(str(self.folder / "bpe/tokenizer.json"))
        trained.save_model(str(self.folder), "gpt")
        (self.folder / "gpt-vocab.json").rename(self.folder / "vocab.json")
        (self.folder / "gpt-merges.txt").rename(self.folder / "merges.txt")
        self.text, self.set = self.folder / "text", self.folder / "set.h5"

    def start(self, module, *words):
        command = [sys.executable, "-m", module, *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300)

    def stream(self):
        with h5py.File(self.set) as file:
            parts = [numpy.array(file[split + "/tokens"]) for split in ("train", "test")]
            return numpy.concatenate(parts).tolist(), file["train/documents"][:].tolist(), dict(file.attrs)

    def test_a_set_says_which_token_stands_for_masked_ones(self):
        trained = tokenizers.ByteLevelBPETokenizer()
        trained.train_from_iterator([TEXT], special_tokens=["[SEP]", "[MASK]"], show_progress=False)
        trained.save(str(self.folder / "tokenizer.json"))
        self.text.write_text(TEXT)
        tokenizer = Tokenizer(self.folder / "tokenizer.json")
        packing.pack([self.text], tokenizer, self.set)
        stream, _, attributes = self.stream()
        self.assertEqual((stream[-1], attributes["mask"]), (0, 1))

    def test_a_set_has_the_tokens_of_its_documents(self):
        self.text.write_text(TEXT * 3)
        words = ("--text", self.text, self.text, "--tokenizer", self.folder / "bpe", "--out", self.set)
        ended = self.start("antichain.tokens", *words, "--document-separator", "\\n\\n", "--validation", 0.2)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        one = Tokenizer(self.folder / "bpe")
        self.assertEqual(one.encode(TEXT), Tokenizer(self.folder).encode(TEXT))
        pieces = [TEXT[: TEXT.index("\n\n") + 2], TEXT[TEXT.index("\n\n") + 2 :]]
        each = [pieces[0], pieces[1] + pieces[0], pieces[1] + pieces[0], pieces[1]] * 2
        ids = [[*one.encode(text), one.end] for text in each]
        stream, starts, attributes = self.stream()
        self.assertEqual(stream, sum(ids, []))
        places = [0, *itertools.accumulate(map(len, ids))]
        self.assertEqual(starts, places[: len(starts)])
        self.assertEqual(attributes["vocabulary"], 300)
        self.assertEqual(attributes["name"], "set")
        self.assertTrue(attributes["tokenizer"].startswith("bpe "))
        with h5py.File(self.set) as file:
            self.assertEqual(file["train/tokens"].dtype, numpy.uint16)
        shown = antichain.run("data show", str(self.set), listener=lambda *_: None)
        for part in "set, text in a vocabulary of 300 tokens (bpe ", "train":
            self.assertIn(part, shown)

    def test_long_documents_are_taken_in_parts(self):
        long = " ".join(TEXT.split() * 40) + "\n\n  odd   blanks "
        self.text.write_text(long)
        one = Tokenizer(self.folder)
        self.assertTrue(one.parts_at_words())
        block, packing.BLOCK = packing.BLOCK, 64
        try:
            packing.pack([self.text], one, str(self.set))
        finally:
            packing.BLOCK = block
        self.assertEqual(self.stream()[0][:-1], one.encode(long))

    def test_a_network_goes_on_with_a_text(self):
        self.text.write_text(TEXT * 9)
        packing.pack([self.text], Tokenizer(self.folder / "bpe"), str(self.set))
        net = self.folder / "net.json"
        net.write_text(json.dumps(NETWORK))
        how = {"dataset": f"hdf5:{self.set}", "batch": 4, "microbatches": 1, "steps": 3, "lr": 0.1}
        antichain.run("train", graph=net, results=self.folder / "run", listener=lambda *_: None, **how)
        words = ("--graph", net, "--weights", self.folder / "run/weights.h5", "--tokens", 5)
        tokenizer = ("--tokenizer", self.folder / "bpe")
        ended = self.start("antichain.generate", *tokenizer, "--prompt", "In the beginning", *words)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertTrue(ended.stdout.startswith("In the beginning"), ended.stdout)
        self.assertGreater(len(ended.stdout), len("In the beginning\n"))
        wrong = self.start("antichain.generate", *tokenizer, "--prompt", "a", *words[:2])
        self.assertIn("--weights", wrong.stderr)
        for option in "--json=-", "--prompt-tokens=1":
            wrong = self.start("antichain.generate", *tokenizer, "--prompt", "a", *words, option)
            self.assertIn("is an option of antichain generate itself", wrong.stderr)
        wrong = self.start("antichain.generate", *tokenizer, "--prompt", "", *words)
        self.assertIn("the prompt has no token", wrong.stderr)

    def test_what_is_wrong_is_one_sentence(self):
        words = ("--text", self.text, "--tokenizer", self.folder, "--out", self.set)
        self.text.write_bytes(b"\xff\xfe")
        for change, sentence in (
            ((), "it is no UTF-8"),
            (("--text", self.folder / "none"), "No such file"),
            (("--tokenizer", self.text), "no tokenizer that can be read"),
            (("--tokenizer", self.folder / "none"), "neither a tokenizer.json nor a folder"),
            (("--out", self.text), "no HDF5 file"),
            (("--end", "<nothing>"), "has no token '<nothing>'"),
        ):
            ended = self.start("antichain.tokens", *words, *change)
            self.assertNotEqual(ended.returncode, 0)
            self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)
            self.assertIn(sentence, ended.stderr)
            self.assertFalse(self.set.exists())


if __name__ == "__main__":
    unittest.main()
