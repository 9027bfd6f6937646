#!/usr/bin/env python3
"""Writes tests/golden/language.txt: losses and gradients of small transformers in float64, and how far
PyTorch's float32 is from them.

    python3 tests/golden/language.py             (PyPI: torch, torchvision, transformers)

The networks are Hugging Face's and torchvision's, with the weights of networks.py and without dropout; which
sizes they have is in NETWORKS here and in tests/models/language_test.cpp. A batch has three samples:

    tokens       drawn
    labels       drawn; the first sample has two, and in the others every third is ignored (-100)
    token types  1 in the second half
    documents    BERT's: sample n has 2 n positions less, the rest is padding

The loss is the mean over all labels that count, or over the samples of images. A network has a line with it,
then one for each parameter with the norm of its gradient and the error of PyTorch's float32: the root mean
square over the batches, in the L2 norm, relative to the norm of all gradients together. "gradients" is the
error of all together. A last line has the 64 tokens with which GPT-2 goes on, greedily.
"""
import copy
import pathlib

import numpy
import torch
import torchvision
import transformers
from torch.nn import functional
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, LlamaConfig
from transformers import LlamaForCausalLM

import networks

FILE = pathlib.Path(__file__).parent / "language.txt"
SAMPLES, LENGTH, WORDS, BATCHES = 3, 11, 37, 4


def gpt2(tied):
    drops = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 24, "n_positions": 80, "vocab_size": WORDS}
    return GPT2LMHeadModel(GPT2Config(**sizes, **drops, tie_word_embeddings=tied))


def llama(tied):
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32}
    sizes |= {"intermediate_size": 48, "vocab_size": WORDS, "max_position_embeddings": 64}
    return LlamaForCausalLM(LlamaConfig(**sizes, rms_norm_eps=1e-5, tie_word_embeddings=tied))


def bert():
    drops = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 24, "intermediate_size": 40}
    return BertForMaskedLM(BertConfig(**sizes, **drops, vocab_size=WORDS, max_position_embeddings=16))


def vit():
    return torchvision.models.VisionTransformer(32, 8, 2, 2, 24, 96, num_classes=10)


NETWORKS = {
    "gpt2": lambda: gpt2(True),
    "gpt2_untied": lambda: gpt2(False),
    "llama": lambda: llama(True),
    "llama_untied": lambda: llama(False),
    "bert": bert,
    "vit": vit,
}


def whole(name, most, shape=(SAMPLES, LENGTH)):
    return torch.from_numpy(((networks.drawn(name, shape) + 1) / 2 * most).astype(numpy.int64))


def labels_of(k):
    labels = whole(f"labels {k}", WORDS)
    labels[0, 2:] = -100
    labels[1:, ::3] = -100
    return labels


def loss_of(name, net, k):
    floats = next(net.parameters()).dtype
    if name == "vit":
        images = networks.drawn(f"images {k}", (SAMPLES, 3, 32, 32)).astype(numpy.float32)
        return functional.cross_entropy(net(torch.from_numpy(images).to(floats)), torch.arange(SAMPLES))
    given = {}
    if name == "bert":
        given["attention_mask"] = (torch.arange(LENGTH) < LENGTH - 2 * torch.arange(SAMPLES)[:, None]).long()
        given["token_type_ids"] = (torch.arange(LENGTH) >= LENGTH // 2).long().expand(SAMPLES, -1)
    logits = net(whole(f"tokens {k}", WORDS), **given).logits
    labels = labels_of(k)
    if name == "bert":
        labels[given["attention_mask"] == 0] = -100
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def results(name, net, k):
    net.zero_grad()
    loss = loss_of(name, net, k)
    loss.backward()
    unused = {n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in net.named_parameters()}
    return loss.item(), {n: g.detach().double() for n, g in unused.items()}


def together(tensors):
    return sum((t**2).sum().item() for t in tensors) ** 0.5


def lines(name):
    net32 = networks.load(NETWORKS[name]()).train()
    net64 = copy.deepcopy(net32).double()
    squares, first = {}, None
    for k in range(BATCHES):
        (loss, right), (_, single) = results(name, net64, k), results(name, net32, k)
        first = first or (loss, {n: g.norm().item() for n, g in right.items()})
        size = together(right.values())
        errors = {n: ((single[n] - g).norm() / size).item() ** 2 for n, g in right.items()}
        least = {n: ((g.float().double() - g).norm() / size).item() ** 2 for n, g in right.items()}
        for n in right:
            squares[n] = squares.get(n, 0) + max(errors[n], least[n]) / BATCHES
    yield f"network {name} {first[0]:.12g}"
    yield f"gradients {sum(squares.values())**0.5:.3g}"
    for n, norm in first[1].items():
        yield f"{n} {norm:.10g} {squares[n]**0.5:.2g}"


def continuation():
    """64 tokens behind the first five of the first batch."""
    net = networks.load(gpt2(True)).double().eval()
    tokens = whole("tokens 0", WORDS)[:1, :5]
    with torch.no_grad():
        for _ in range(64):
            tokens = torch.cat((tokens, net(tokens).logits[:, -1].argmax(-1, keepdim=True)), 1)
    return "continuation " + " ".join(map(str, tokens[0].tolist()))


def main():
    torch.set_num_threads(1)
    versions = [f"{of.__name__} {of.__version__}" for of in (torch, torchvision, transformers)]
    text = [f"# {', '.join(versions)}: float64, and float32 beside it, one thread"]
    for name in NETWORKS:
        text += lines(name)
    FILE.write_text("\n".join([*text, continuation()]) + "\n")


if __name__ == "__main__":
    main()
