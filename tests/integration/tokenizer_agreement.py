"""Token ids of random strings by the `tokenizers` package, for tokenizers of Llama 3's and of Qwen3's make.

tokenizer_agreement.py FOLDER COUNT [QWEN2_FOLDER]: writes `strings.json`, COUNT strings made from a fixed seed, and for
each tokenizer NAME.json (a tokenizer.json) and NAME.ids: for each string the number of its ids and the ids, int32.
Llama 3's byte pairs are trained here; Qwen3's are Qwen2's, vocab.json and merges.txt in QWEN2_FOLDER.
"""

import json
import random
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

sys.path.append(str(Path(__file__).parent.parent / "data" / "tokenizer"))
import golden_strings as tables  # noqa: E402

SEED = 20
TRAINED_TOKENS = 4000
# Llama 3's and Qwen2's, as their checkpoints write them: they differ in the digits of a number that stay together.
LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_PATTERN = LLAMA3_PATTERN.replace(r"\p{N}{1,3}", r"\p{N}")
LLAMA3_SPECIALS = (
    *("<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|finetune_right_pad_id|>"),
    *("<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>"),
    *(f"<|reserved_special_token_{i}|>" for i in range(2, 249)),
)
QWEN3_SPECIALS = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>"),
    *("<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>"),
    *("<|image_pad|>", "<|video_pad|>"),
)
QWEN3_WORDS = (
    *("<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>"),
    *("<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>"),
)
ADDED_TOKENS = (*LLAMA3_SPECIALS[:12], *QWEN3_SPECIALS[:5], *QWEN3_WORDS)
DIGITS = "0123456789" * 3 + "\u0663\u096a\uff15\u00b2\u2167\u00bd\U0001d7d8"


def piece(rng: random.Random, text: str) -> str:
    start = rng.randrange(len(text))
    return text[start : start + rng.randint(1, 60)]


def any_code_points(rng: random.Random) -> str:
    points = (rng.randrange(0x110000) for _ in range(rng.randint(1, 4)))
    return "".join(chr(point) for point in points if not 0xD800 <= point < 0xE000)


def added_token(rng: random.Random) -> str:
    """One as it is, a part of one, or two that share their middle."""
    token, other = rng.choice(ADDED_TOKENS), rng.choice(ADDED_TOKENS)
    return rng.choice((token, token, token[: rng.randrange(len(token))], token[:-1] + other))


KINDS: tuple[Callable[[random.Random], str], ...] = (
    lambda rng: piece(rng, rng.choice(tables.SENTENCES)),
    lambda rng: piece(rng, rng.choice(tables.SENTENCES)).upper(),
    lambda rng: piece(rng, rng.choice(tables.CODE)),
    lambda rng: rng.choice(tables.CODE),
    lambda rng: rng.choice(tables.SPACES) * rng.randint(1, 9),
    lambda rng: "".join(rng.choice((" ", " ", "\n", "\r\n", "\t")) for _ in range(rng.randint(1, 12))),
    lambda rng: "".join(rng.choice(DIGITS) for _ in range(rng.randint(1, 11))),
    lambda rng: rng.choice(tables.EMOJI),
    lambda rng: chr(rng.choice((*range(32), *range(127, 160)))),
    lambda rng: tables.from_block(rng, rng.choice(tables.BLOCKS), rng.randint(1, 6)),
    any_code_points,
    added_token,
    lambda rng: rng.choice(("'s", "'LL", "\u2019re", "'D", "'", "don't", " I'm")),
)


def make_strings(count: int) -> list[str]:
    rng = random.Random(SEED)
    return ["".join(rng.choice(KINDS)(rng) for _ in range(rng.randint(1, 7))) for _ in range(count)]


def byte_level(pattern: str, model: models.BPE) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def with_added(tokenizer: Tokenizer, specials: tuple[str, ...], words: tuple[str, ...] = ()) -> dict[str, Any]:
    spec = json.loads(tokenizer.to_str())
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    first = len(spec["model"]["vocab"])
    spec["added_tokens"] = [
        {"id": first + i, "content": content, **flags, "special": i < len(specials)}
        for i, content in enumerate((*specials, *words))
    ]
    return spec


def llama3(strings: list[str]) -> dict[str, Any]:
    """Some of its tokens no merges make, as of the real one: whole pieces alone find them."""
    tokenizer = byte_level(LLAMA3_PATTERN, models.BPE())
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=TRAINED_TOKENS, show_progress=False, initial_alphabet=alphabet)
    tokenizer.train_from_iterator([text for text in strings if "<|" not in text], trainer)
    spec = with_added(tokenizer, LLAMA3_SPECIALS)
    spec["model"]["ignore_merges"] = True
    spec["model"]["merges"] = [merge for i, merge in enumerate(spec["model"]["merges"]) if i % 9 != 4]
    return spec


def qwen3(folder: Path) -> dict[str, Any]:
    model = models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt"))
    tokenizer = byte_level(QWEN_PATTERN, model)
    tokenizer.normalizer = normalizers.NFC()
    return with_added(tokenizer, QWEN3_SPECIALS, QWEN3_WORDS)


def write(folder: Path, name: str, spec: dict[str, Any], strings: list[str]) -> None:
    text = json.dumps(spec)
    encodings = Tokenizer.from_str(text).encode_batch_fast(strings, add_special_tokens=False)
    (folder / f"{name}.json").write_text(text)
    with (folder / f"{name}.ids").open("wb") as file:
        for encoding in encodings:
            file.write(struct.pack(f"<{1 + len(encoding.ids)}i", len(encoding.ids), *encoding.ids))


def main() -> None:
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    strings = make_strings(count)
    (folder / "strings.json").write_text(json.dumps(strings))
    write(folder, "llama3", llama3(strings[:5000]), strings)
    if len(sys.argv) > 3:
        write(folder, "qwen3", qwen3(Path(sys.argv[3])), strings)


if __name__ == "__main__":
    main()
