"""Public planning instances, read from their files and written as what the program reads.

  python3 -m antichain.instances dnn-partitioning FILE --out FOLDER
  python3 -m antichain.instances sailor FILE --data SAILOR --out FOLDER

docs/planning.md says what comes of them.
"""
