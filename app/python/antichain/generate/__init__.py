"""Goes on with a text (python3 -m antichain.generate)."""
