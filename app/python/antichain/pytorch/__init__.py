"""A PyTorch model on its way to a folder NAME.antichain, in four steps.

  capture    capture_fx.py (torch 1.13) or capture_export.py (torch 2.x) records what a module computes
  normalise  normalise.py makes both records one list of calls (calls.py), and runs it again
  translate  translate.py makes nodes of calls; operators/ has the table, one row a function of PyTorch
  write      record.py computes the numbers to check by; antichain/folder.py writes the three files

saved.py converts weights of torch.save; python3 -m antichain.pytorch is its command.

Only these modules import torch.
"""
