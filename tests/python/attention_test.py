"""antichain.from_torch reads attention, as nn.MultiheadAttention, as PyTorch's one function and as it is
written by hand; vision transformers; and the language models of Hugging Face, where transformers is
installed."""

import json
import math
import os
import shutil
import subprocess
import unittest
from inspect import signature

import numpy
import torch
import torch.nn.functional as F
from torch import nn

import antichain
import graph_run
from antichain import safetensors
from in_a_folder import InAFolder

try:
    import torchvision
except ImportError:
    torchvision = None
try:
    import transformers
except ImportError:
    transformers = None

WIDTH, HEADS, LENGTH, WORDS = 8, 2, 6, 13


class Net(nn.Module):
    """Mixes tokens by f, a function of itself and N x T x C."""

    def __init__(self, f, **modules):
        super().__init__()
        self.f, self.head = f, nn.Linear(WIDTH, 5)
        for name, module in modules.items():
            setattr(self, name, module)
        self.qkv, self.drop = nn.Linear(WIDTH, 3 * WIDTH), nn.Dropout(0.1)
        self.register_buffer("seen", torch.tril(torch.ones(LENGTH, LENGTH)).view(1, 1, LENGTH, LENGTH))

    def forward(self, x):
        return self.head(self.f(self, x).mean(1))


def by_heads(x):
    return x.view(len(x), LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2)


def joined(y):
    return y.transpose(1, 2).contiguous().view(len(y), LENGTH, WIDTH)


def causal_by_hand(self, x):
    q, k, v = (by_heads(part) for part in self.qkv(x).split(WIDTH, dim=2))
    scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
    scores = scores.masked_fill(self.seen[:, :, :LENGTH, :LENGTH] == 0, float("-inf"))
    return joined(self.drop(F.softmax(scores, dim=-1)) @ v)


def one_head(self, x):
    q, k, v = self.qkv(x).chunk(3, -1)
    return torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)) / WIDTH**0.5, dim=-1), v)


def with_a_bias(self, x):  # of each pair of positions, for which there is no operator
    q, k, v = (by_heads(part) for part in self.qkv(x).split(WIDTH, dim=2))
    return joined(((q @ k.transpose(-2, -1)) + self.bias).softmax(-1) @ v)


def one_function(self, x):
    q, k, v = (by_heads(part) for part in self.qkv(x).split(WIDTH, dim=2))
    return joined(F.scaled_dot_product_attention(q, k, v, is_causal=True))


def encoder(batch_first=True, **options):
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 16, batch_first=batch_first, **options)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


# Later versions look at the mask's numbers unless they are told.
TOLD = {"is_causal": True} if "is_causal" in signature(nn.TransformerEncoder.forward).parameters else {}


def masked(self, x):
    return self.e(x, mask=nn.Transformer.generate_square_subsequent_mask(LENGTH), **TOLD)


def turned(self, x):
    return self.e(x.transpose(0, 1)).transpose(0, 1)


def attended(**options):
    return nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, **options)


CASES = {
    "bias": (with_a_bias, {"bias": nn.Parameter(torch.zeros(HEADS, LENGTH, LENGTH))}, False),
    "by_hand": (causal_by_hand, {}, True),
    "cross": (lambda self, x: self.a(x[:, :2], x, x)[0], {"a": attended()}, True),
    "encoder": (lambda self, x: self.e(x), {"e": encoder()}, True),
    "encoder_causal": (masked, {"e": encoder(norm_first=True, activation="gelu")}, True),
    "encoder_turned": (turned, {"e": encoder(batch_first=False)}, True),
    "module": (lambda self, x: self.a(x, x, x, need_weights=False)[0], {"a": attended(dropout=0.1)}, True),
    "no_bias": (lambda self, x: self.a(x, x, x)[0], {"a": attended(bias=False)}, True),
    "one_head": (one_head, {}, True),
}
if hasattr(F, "scaled_dot_product_attention"):
    CASES["one_function"] = (one_function, {}, True)


class Case(InAFolder):
    def write(self, module, inputs, tolerance=graph_run.GRADIENTS, **options):
        folder = self.folder / "net.antichain"
        shutil.rmtree(folder, ignore_errors=True)
        antichain.from_torch(module.train(), inputs, folder=folder, **options)
        graph_run.GraphRun(folder).compare(tolerance)
        return json.loads((folder / "graph.json").read_text())


class Attention(Case):
    def test_of_a_module(self):
        for name, (f, modules, fuses) in CASES.items():
            with self.subTest(name):
                torch.manual_seed(1)
                graph = self.write(Net(f, **modules), torch.randn(3, LENGTH, WIDTH))
                operators = {node["op"] for node in graph["nodes"]}
                self.assertEqual("attention" in operators, fuses, operators)
                self.assertEqual("softmax" in operators, not fuses, operators)

    @unittest.skipUnless(torchvision, "needs torchvision")
    def test_a_vision_transformer(self):
        torch.manual_seed(1)
        net = torchvision.models.VisionTransformer(16, 4, 2, 2, WIDTH, 16, num_classes=5)
        graph = self.write(net, torch.randn(3, 3, 16, 16))
        self.assertEqual(sum(node["op"] == "attention" for node in graph["nodes"]), 2)


def loss(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


@unittest.skipUnless(transformers, "needs transformers")
class HuggingFace(Case):
    def compare(self, model, operators, **options):
        """Asserts how many of each of these operators the network has."""
        torch.manual_seed(1)
        tokens, labels = torch.randint(WORDS, (2, 3, LENGTH))
        labels[0, 2:] = -100
        graph = self.write(model, tokens, loss=loss, labels=labels, **options)
        self.assertEqual(graph["inputs"][0], {"name": "tokens", "shape": [LENGTH], "dtype": "int32"})
        found = [node["op"] for node in graph["nodes"]]
        self.assertEqual({op: found.count(op) for op in operators}, operators)
        self.assertTrue(any("weight" in node.get("shared", {}) for node in graph["nodes"]))

    def test_gpt2(self):
        drops = {"resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1}
        sizes = {"n_layer": 2, "n_head": 2, "n_embd": 16, "n_positions": 12, "vocab_size": WORDS}
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **drops))
        self.compare(model, {"embedding": 1, "attention": 2, "layer_norm": 5, "linear": 9, "activate": 2})

    def test_llama(self):
        config = transformers.LlamaConfig(
            num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, hidden_size=16,
            intermediate_size=24, vocab_size=WORDS, max_position_embeddings=12, tie_word_embeddings=True,
        )  # fmt: skip
        wanted = {"attention": 2, "rotary": 4, "layer_norm": 5, "permute": 0, "softmax": 0}
        # Their tables of rotary positions are float32, also in float64.
        self.compare(transformers.LlamaForCausalLM(config), wanted, tolerance=1e-6)

    def test_bert(self):
        config = transformers.BertConfig(
            num_hidden_layers=2, num_attention_heads=2, hidden_size=16, intermediate_size=24,
            vocab_size=WORDS, max_position_embeddings=12,
        )  # fmt: skip
        self.compare(transformers.BertForMaskedLM(config), {"attention": 2, "embedding": 1, "permute": 0})


PROGRAM = os.environ.get("ANTICHAIN")
NANO = {"n_layer": 4, "n_head": 4, "n_embd": 128, "n_positions": 64, "vocab_size": 256}


@unittest.skipUnless(transformers and PROGRAM, "needs transformers and the program")
class Weights(InAFolder):
    def export(self, *words):
        command = [PROGRAM, "export", "--model", "gpt_nano", *words]
        said = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stderr)
        return said.stdout

    def test_hugging_face_reads_what_export_writes(self):
        self.export("--out", str(self.folder / "model.safetensors"))
        transformers.GPT2Config(**NANO).save_pretrained(self.folder)
        model, said = transformers.GPT2LMHeadModel.from_pretrained(self.folder, output_loading_info=True)
        self.assertEqual([*said["missing_keys"], *said["unexpected_keys"], *said["mismatched_keys"]], [])
        written, state = safetensors.read(self.folder / "model.safetensors"), model.state_dict()
        self.assertEqual(set(written), set(state))
        for name, array in written.items():
            numpy.testing.assert_array_equal(array, state[name].numpy())

    def test_export_reads_what_hugging_face_writes(self):
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**NANO))
        model.save_pretrained(self.folder)  # without the head, which is tied
        whole, inner = self.folder / "model.safetensors", self.folder / "inner.safetensors"
        arrays = safetensors.read(whole)
        self.assertNotIn("lm_head.weight", arrays)
        # As files of the hub are: without the prefix, and with the masks.
        short = {name.removeprefix("transformer."): array for name, array in arrays.items()}
        masks = {f"h.{i}.attn.bias": numpy.tri(64, dtype=numpy.float32)[None, None] for i in range(4)}
        safetensors.write(inner, {**short, **masks})
        for file, said in ((whole, ""), (inner, "masks or positions, which the network computes")):
            out = self.folder / "out.safetensors"
            self.assertIn(said, self.export("--init", str(file), "--out", str(out)))
            read = safetensors.read(out)
            for name, array in arrays.items():
                numpy.testing.assert_array_equal(read[name], array)

    def test_a_text_goes_on_as_with_hugging_face(self):
        sizes = {"num_hidden_layers": 6, "num_attention_heads": 6, "num_key_value_heads": 3}
        sizes |= {"hidden_size": 288, "intermediate_size": 768, "max_position_embeddings": 96}
        sizes |= {"rms_norm_eps": 1e-5}
        sizes |= {"vocab_size": 256, "tie_word_embeddings": True}
        ends = {"initializer_range": 0.1, "bos_token_id": None, "eos_token_id": None}
        torch.manual_seed(1)
        gpt = transformers.GPT2LMHeadModel(transformers.GPT2Config(**NANO | {"n_positions": 96}, **ends))
        llama = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **ends))
        for name, model in (("gpt_nano", gpt.eval()), ("llama", llama.eval())):
            prompt = torch.randint(256, (1, 9))
            tokens = prompt
            with torch.no_grad():
                for _ in range(64):
                    tokens = torch.cat((tokens, model(tokens).logits[:, -1:].argmax(-1)), 1)
            file = self.folder / "model.safetensors"
            model.save_pretrained(self.folder)
            text = ",".join(map(str, prompt[0].tolist()))
            command = [PROGRAM, "generate", "--model", name, "--sequence", "96", "--vocabulary", "256"]
            command += ["--weights", str(file), "--prompt-tokens", text, "--tokens", "64", "--json", "-"]
            for ranks in "1", "2":
                said = subprocess.run([*command, "--local", ranks], capture_output=True)  # any bytes
                self.assertEqual(said.returncode, 0, said.stderr)
                self.assertEqual(json.loads(said.stdout)["tokens"], tokens[0, 9:].tolist(), name)


if __name__ == "__main__":
    unittest.main()
