"""antichain.from_torch reads nn.RNN, nn.LSTM and nn.GRU, whose steps become nodes with one weight."""

import unittest

import torch
from torch import nn

import antichain
from antichain.pytorch.recurrent import step_by_step
from attention_test import Case

LAYERS = {
    "rnn": lambda: nn.RNN(4, 6, nonlinearity="relu", batch_first=True),
    "lstm": lambda: nn.LSTM(4, 6, num_layers=2, dropout=0.1, bidirectional=True),
    "gru": lambda: nn.GRU(4, 6, num_layers=2, bias=False, batch_first=True),
}


class Net(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.layers, self.head = make(), nn.LazyLinear(5)

    def forward(self, x):
        y, last = self.layers(x if self.layers.batch_first else x.transpose(0, 1))
        h = last[1] if isinstance(last, tuple) else last
        y = y if self.layers.batch_first else y.transpose(0, 1)
        return self.head(torch.cat([y.mean(1), h[-1], h[0]], 1))


CELLS = {nn.RNNCell: nn.RNN, nn.LSTMCell: nn.LSTM, nn.GRUCell: nn.GRU}


class Unrolled(nn.Module):
    """Has a cell in a loop, the first state the usual one."""

    def __init__(self, make):
        super().__init__()
        self.cell, self.head = make(4, 6), nn.Linear(6, 5)

    def forward(self, x):
        state = None
        for t in range(x.size(1)):
            state = self.cell(x[:, t], state)
        return self.head(state[0] if isinstance(state, tuple) else state)


class Recurrent(Case):
    def test_cells_give_the_numbers_of_pytorch(self):
        for make in CELLS:
            with self.subTest(make):
                torch.manual_seed(1)
                net, x = Unrolled(make), torch.randn(3, 4, 4)
                right = net(x)
                self.write(net, x)
                antichain.run("check", graph=self.folder / "net.antichain")
                step_by_step(net)
                torch.testing.assert_close(net(x), right)

    def test_they_give_the_numbers_of_pytorch(self):
        for name, make in LAYERS.items():
            with self.subTest(name):
                torch.manual_seed(1)
                net, x = Net(make).eval(), torch.randn(3, 7, 4)
                right = net(x)
                self.write(net.train(), x)
                antichain.run("check", graph=self.folder / "net.antichain")
                step_by_step(net.eval())
                torch.testing.assert_close(net(x), right)

    def test_a_first_state_is_taken(self):
        for make in LAYERS.values():
            layers = make()
            x, h = torch.randn(3, 5, 4), torch.randn(layers.num_layers * (1 + layers.bidirectional), 3, 6)
            x = x if layers.batch_first else x.transpose(0, 1)
            state = (h, -h) if isinstance(layers, nn.LSTM) else h
            right = layers.eval()(x, state)
            step_by_step(layers)
            torch.testing.assert_close(layers(x, state), right)


if __name__ == "__main__":
    unittest.main()
