"""nn.RNN, nn.LSTM and nn.GRU, step by step, and the cells of one step, which stand in for PyTorch's own code
while a module is captured: that is one function for all of it."""

import functools
import types

import torch
import torch.nn.functional as functional


def _rnn(m, x, state, linear):
    y = x + linear(state[0])
    return [torch.tanh(y) if m.nonlinearity == "tanh" else torch.relu(y)]


def _lstm(m, x, state, linear):
    i, f, g, o = (x + linear(state[0])).chunk(4, 1)
    c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
    return [torch.sigmoid(o) * torch.tanh(c), c]


def _gru(m, x, state, linear):
    (r, z, n), (hr, hz, hn) = x.chunk(3, 1), linear(state[0]).chunk(3, 1)
    n = torch.tanh(n + torch.sigmoid(r + hr) * hn)
    return [n + torch.sigmoid(z + hz) * (state[0] - n)]


CELLS = {torch.nn.RNN: _rnn, torch.nn.LSTM: _lstm, torch.nn.GRU: _gru}
OF_ONE_STEP = {torch.nn.RNNCell: _rnn, torch.nn.LSTMCell: _lstm, torch.nn.GRUCell: _gru}


def _step(m, x, hx=None):
    linear = functools.partial(functional.linear, weight=m.weight_hh, bias=m.bias_hh)
    given = [x.new_zeros(len(x), m.hidden_size)] * 2 if hx is None else hx if isinstance(hx, tuple) else [hx]
    state = OF_ONE_STEP[type(m)](m, functional.linear(x, m.weight_ih, m.bias_ih), given, linear)
    return tuple(state) if len(state) > 1 else state[0]


def _forward(m, x, hx=None):
    cell, length = CELLS[type(m)], x.shape[1] if m.batch_first else x.shape[0]
    x = x if m.batch_first else x.transpose(0, 1)
    given, ends = hx if isinstance(hx, tuple) else (hx,), []
    kinds = 2 if type(m) is torch.nn.LSTM else 1  # of states
    for layer in range(m.num_layers):
        outputs = []
        for ending in ["", "_reverse"][: 1 + m.bidirectional]:
            tensor = lambda name: getattr(m, f"{name}_l{layer}{ending}") if m.bias or "w" in name else None
            linear = functools.partial(functional.linear, weight=tensor("weight_hh"), bias=tensor("bias_hh"))
            gates = functional.linear(x, tensor("weight_ih"), tensor("bias_ih"))
            if hx is None:
                state = [x.new_zeros(x.shape[0], m.hidden_size)] * kinds
            else:
                state = [of[len(ends)] for of in given]
            steps = [None] * length
            for t in range(length) if not ending else reversed(range(length)):
                state = cell(m, gates[:, t], state, linear)
                steps[t] = state[0]
            outputs.append(torch.stack(steps, 1))
            ends.append(state)
        x = torch.cat(outputs, 2) if len(outputs) > 1 else outputs[0]
        if m.dropout and m.training and layer < m.num_layers - 1:
            x = functional.dropout(x, m.dropout)
    last = tuple(torch.stack(of) for of in zip(*ends))
    return x if m.batch_first else x.transpose(0, 1), last if kinds > 1 else last[0]


def step_by_step(module):
    """Has each recurrent layer and cell of a module, a copy, compute so, where its states have no
    projection."""
    for m in module.modules():
        if type(m) in CELLS and not m.proj_size or type(m) in OF_ONE_STEP:
            of, axes = (_forward, 3) if type(m) in CELLS else (_step, 2)
            own = m.forward

            def forward(m, x, *args, own=own, of=of, axes=axes, **kwargs):
                plain = isinstance(x, torch.Tensor) and x.dim() == axes
                return (functools.partial(of, m) if plain else own)(x, *args, **kwargs)

            m.forward = types.MethodType(forward, m)
