"""The small byte-level BPE of the demonstration Coder."""
