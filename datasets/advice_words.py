"""The closed list of advice in words, read from the contract, as trainer, workers and service do."""

import re
from pathlib import Path

_CONTRACT = Path(__file__).resolve().parents[1] / "proto" / "warpsmith" / "v1" / "task.proto"
_VALUE = re.compile(r'^ *ADVICE_\w+ = \d+ \[\(words\) = "([^"]+)"\];$', re.M)

ADVICE = tuple(_VALUE.findall(_CONTRACT.read_text(encoding="utf-8")))
