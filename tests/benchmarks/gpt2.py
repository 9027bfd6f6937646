"""GPT-2 in PyTorch, as benchmarks compare with it. Parameters have the names of Hugging Face."""
from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(self, heads, width, length):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        masked = torch.full((length, length), float("-inf")).triu(1)
        self.register_buffer("masked", masked, persistent=False)

    def forward(self, x):
        q, k, v = self.c_attn(x).view(*x.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if hasattr(functional, "scaled_dot_product_attention"):
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            y = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + self.masked).softmax(-1) @ v
        return self.c_proj(y.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self, heads, width, length):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(heads, width, length)
        self.mlp = nn.Sequential(OrderedDict(
            c_fc=nn.Linear(width, 4 * width), gelu=nn.GELU(approximate="tanh"), c_proj=nn.Linear(4 * width, width)))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):
    """Returns logits, N x length x words, of tokens, N x length. The embedding is the last layer, too."""

    def __init__(self, layers, heads, width, words, length):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(length, width)
        self.h = nn.Sequential(*(Block(heads, width, length) for _ in range(layers)))
        self.ln_f = nn.LayerNorm(width)
        for parameter in self.parameters():  # PyTorch's own embeddings would make denormal gradients
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens):
        return self.ln_f(self.h(self.wte(tokens) + self.wpe.weight)) @ self.wte.weight.T

    def load(self, weights):
        """Takes the tensors of Hugging Face's file, whose linear layers within a block have weights I x O."""
        own = {name: w.T if ".c_" in name and w.dim() > 1 else w for name, w in weights.items()}
        self.load_state_dict({name.removeprefix("transformer."): own[name] for name in own if name != "lm_head.weight"})
