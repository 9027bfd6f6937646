"""antichain.from_torch reads attention with masks: constant ones (causal, a band, truth values or what is
added), and those that are inputs of the network, such as padding; also of Hugging Face's models, where
transformers is installed."""

import json
import unittest

import torch
import torch.nn.functional as F
from torch import nn

import antichain
import graph_run
from attention_test import LENGTH, WIDTH, WORDS, attended, by_heads, encoder, joined, loss, transformers
from in_a_folder import InAFolder

SAMPLES = 4
KEPT = torch.arange(LENGTH)[None] < torch.tensor([LENGTH, 3, 4, LENGTH])[:, None]
SEEN = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()


def by_hand(masked):
    """Attention of which `masked` hides scores, a function of the module, the scores and the mask."""

    def f(self, x, *mask):
        q, k, v = (by_heads(part) for part in self.qkv(x).split(WIDTH, dim=2))
        return joined(masked(self, q @ k.transpose(-2, -1) / 2, *mask).softmax(-1) @ v)

    return f


def one_function(mask_of, **options):
    def f(self, x, *mask):
        q, k, v = (by_heads(part) for part in self.qkv(x).split(WIDTH, dim=2))
        return joined(F.scaled_dot_product_attention(q, k, v, attn_mask=mask_of(self, *mask), **options))

    return f


class Net(nn.Module):
    """Mixes tokens by f, a function of itself, N x T x C and a mask, if there is one."""

    def __init__(self, f, **modules):
        super().__init__()
        self.f, self.qkv, self.head = f, nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, 5)
        for name, module in modules.items():
            setattr(self, name, module)
        self.register_buffer("seen", SEEN)
        self.register_buffer("band", SEEN & ~SEEN.roll(3, 0).tril(-3))
        self.register_buffer("added", torch.full((LENGTH, LENGTH), float("-inf")).triu(1))

    def forward(self, x, *mask):
        return self.head(self.f(self, x, *mask).mean(1))


def masked(self, scores, mask):
    return scores.masked_fill(~mask[:, None, None], -1e9)


OF_MODULE = lambda **options: lambda self, x: self.a(x, x, x, **{n: f(self) for n, f in options.items()})[0]
# By name: f, the mask that is an input, or None, and whether the operator `attention` does it.
CASES = {
    "added": (by_hand(lambda self, scores: scores + self.added), None, True),
    "both": (by_hand(lambda self, scores, m: masked(self, scores, m) + self.added), KEPT, False),
    "module": (OF_MODULE(attn_mask=lambda self: ~self.seen), None, True),
    "module, a band": (OF_MODULE(attn_mask=lambda self: ~self.band), None, False),
    "module, padding": (lambda self, x, m: self.a(x, x, x, key_padding_mask=m)[0], ~KEPT, False),
    "module, both": (
        lambda self, x, m: self.a(x, x, x, key_padding_mask=m, attn_mask=~self.seen)[0], ~KEPT, False
    ),
    "module, encoder": (lambda self, x, m: self.e(x, src_key_padding_mask=m), ~KEPT, False),
    "padding": (by_hand(masked), KEPT, False),
}  # fmt: skip
if hasattr(F, "scaled_dot_product_attention"):
    CASES |= {
        "function": (one_function(lambda self: self.seen), None, True),
        "function, added": (one_function(lambda self: self.added), None, True),
        "function, a band": (one_function(lambda self: self.band), None, False),
        "function, padding": (one_function(lambda self, m: m[:, None, None]), KEPT, False),
        "function, both": (one_function(lambda self, m: m[:, None, None] & self.seen), KEPT, False),
        "function, whole": (one_function(lambda self, m: m[:, None]), KEPT[:, None] & SEEN, False),
        "function, numbers": (one_function(lambda self, m: (1 - m)[:, None, None] * -1e9), KEPT.float(), False),
    }


class Masks(InAFolder):
    def setUp(self):
        super().setUp()
        self.net = self.folder / "net.antichain"

    def write(self, module, inputs, tolerance=graph_run.GRADIENTS, **options):
        antichain.from_torch(module.train(), inputs, folder=self.net, **options)
        graph_run.GraphRun(self.net).compare(tolerance)
        antichain.run("check", graph=self.net)
        return json.loads((self.net / "graph.json").read_text())

    def net_of(self, f):
        torch.manual_seed(1)
        return Net(f, a=attended(), e=encoder())

    def test_of_a_module(self):
        for name, (f, mask, fuses) in CASES.items():
            with self.subTest(name):
                net, x = self.net_of(f), torch.randn(SAMPLES, LENGTH, WIDTH)
                graph = self.write(net, x if mask is None else (x, mask))
                operators = {node["op"] for node in graph["nodes"]}
                self.assertEqual("attention" in operators, fuses, operators)
                self.assertEqual("softmax" in operators, not fuses, operators)

    def test_of_tokens(self):
        """A constant mask beside whole numbers alone."""
        net = self.net_of(OF_MODULE(attn_mask=lambda self: ~self.band))
        self.write(nn.Sequential(nn.Embedding(WORDS, WIDTH), net), torch.randint(WORDS, (SAMPLES, LENGTH)))

    @unittest.skipUnless("function" in CASES, "needs a later torch")
    def test_what_is_refused_names_the_mask(self):
        nothing = self.net_of(one_function(lambda self: self.nothing))
        nothing.register_buffer("nothing", SEEN & ~torch.eye(LENGTH, dtype=torch.bool))
        sentence = "an attention mask nothing that hides every position of some row at node"
        with self.assertRaisesRegex(antichain.AntichainError, sentence):
            self.write(nothing, torch.randn(SAMPLES, LENGTH, WIDTH))

    @unittest.skipUnless(transformers, "needs transformers")
    def test_models_of_hugging_face(self):
        sizes = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 16, "intermediate_size": 24}
        sizes |= {"vocab_size": WORDS, "max_position_embeddings": 12}
        gpt2 = transformers.GPT2Config(n_layer=2, n_head=2, n_embd=16, n_positions=12, vocab_size=WORDS)
        llama = transformers.LlamaConfig(**sizes, num_key_value_heads=2)
        for model in (
            transformers.BertForMaskedLM(transformers.BertConfig(**sizes)),
            transformers.GPT2LMHeadModel(gpt2),
            transformers.LlamaForCausalLM(llama),
        ):
            with self.subTest(type(model).__name__):
                torch.manual_seed(1)
                tokens = torch.randint(WORDS, (SAMPLES, LENGTH))
                inputs = {"input_ids": tokens, "attention_mask": KEPT.long()}
                # Llama's tables of rotary positions are float32, also in float64.
                labels = tokens.masked_fill(~KEPT, -100)
                graph = self.write(model, inputs, 1e-6, loss=loss, labels=labels)
                self.assertEqual(sum(node["op"] == "softmax" for node in graph["nodes"]), 2)


if __name__ == "__main__":
    unittest.main()
