"""Changes a text of Python programs so that it often stays one: by lines and words where libFuzzer changes bytes."""

import random
import re

_WORD = re.compile(rb"[A-Za-z_][A-Za-z_0-9.]*|[0-9.]+|[-+*/%@&|^<>=]+|[()\[\]{}]")
_WORDS = (
    *(b"Model", b"ModelNew", b"forward", b"self", b"x", b"torch", b"nn.Sequential", b"class", b"def", b"async def"),
    *(b"return", b"lambda x:", b"if", b"for", b"while True:", b"with", b"try:", b"yield", b"await", b"import", b"del"),
    *(
        b"0",
        b"1e999",
        b"'\\ud800'",
        b"'a'",
        b'f"{x!r:>{x}}"',
        b"...",
        b"None",
        b"*",
        b"**",
        b"@",
        b":=",
        b"not",
        b"x: int",
    ),
)
_REPEATS_MAX = 64


def mutate(data: bytes, bytes_max: int, seed: int) -> bytes:
    """One change that follows from `seed`."""
    rng = random.Random(seed)
    lines = data.split(b"\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    line = lines[at]
    change = rng.randrange(7)
    if change == 0:
        lines[at : at + 1] = []
    elif change == 1:
        lines[at : at + 1] = [line] * rng.randint(2, _REPEATS_MAX)
    elif change == 2:
        lines[at], lines[other] = lines[other], line
    elif change == 3:
        lines[at] = b"    " + line if rng.random() < 0.5 else line.removeprefix(b"    ")
    elif change == 4:
        lines.insert(other, line)
    else:
        lines[at] = _other_word(line, data, rng)
    return b"\n".join(lines)[:bytes_max]


def _other_word(line: bytes, data: bytes, rng: random.Random) -> bytes:
    places = list(_WORD.finditer(line))
    if not places:
        return line + rng.choice(_WORDS)
    place = rng.choice(places)
    known = [match.group() for match in _WORD.finditer(data)]
    word = rng.choice(known) if rng.random() < 0.6 else rng.choice(_WORDS)
    begin = place.start() if rng.random() < 0.7 else place.end()
    return line[:begin] + word + line[place.end() :]
