"""Makes the expected ids that the tokenizer's tests compare with, by the `tokenizers` package.

    python tests/data/tokenizer/make_golden.py --qwen2 DIR

Writes `fixture.json`, a small tokenizer, and `golden.json`: over 2,000 strings, and for each of several
tokenizers four hexadecimal digits a string, the beginning of the SHA-256 of its ids (int32, little-endian).
The tokenizers are the fixture, the fixture with each of `VARIANTS` merged in (RFC 7386), and Qwen2's, whose
vocab.json and merges.txt lie in DIR and not in this repository.
"""

import argparse
import hashlib
import json
import random
import struct
from pathlib import Path
from typing import Any

from golden_strings import make_strings
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = Path(__file__).parent
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA_PATTERN = QWEN_PATTERN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
LINE_PATTERN = r"(?:[^\n0-9]|(?<=\[)[0-9](?=\]))+(?:\n[\n ]*)?|[0-9]|\n[\n ]*"
QWEN_SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
QWEN_WORDS = ("<think>", "</think>", "<tool_call>")


def added(token_id: int, content: str, **flags: bool) -> dict[str, Any]:
    base = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": token_id, "content": content} | base | flags


def split(pattern: dict[str, str], behavior: str, invert: bool = False) -> dict[str, Any]:
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def byte_level(**flags: bool) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False} | flags


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": list(steps)}}


VARIANTS: dict[str, dict[str, Any]] = {
    "no_normalizer": {"normalizer": None},
    "normalizer_sequence": {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]}},
    "ignore_merges": sequence(split({"Regex": LLAMA_PATTERN}, "Isolated"), byte_level())
    | {"model": {"ignore_merges": True}},
    "lines": sequence(split({"Regex": LINE_PATTERN}, "Isolated"), byte_level()),
    "gpt2": sequence(byte_level(use_regex=True)),
    "prefix_space": sequence(
        split({"String": "\n"}, "Isolated"), byte_level(add_prefix_space=True, use_regex=True)
    ),
    "removed": sequence(split({"Regex": r"\s+"}, "Removed"), byte_level()),
    "merged_with_previous": sequence(split({"Regex": r"[aeiou ]"}, "MergedWithPrevious"), byte_level()),
    "merged_with_next": sequence(split({"Regex": r"[aeiou ]"}, "MergedWithNext"), byte_level()),
    "contiguous": sequence(split({"Regex": r"[aeiou ]"}, "Contiguous"), byte_level()),
    "inverted": sequence(split({"Regex": r"\p{L}+|\d+"}, "Removed", invert=True), byte_level()),
    "literal": sequence(split({"String": "in."}, "Isolated"), byte_level()),
    "digits": sequence({"type": "Digits", "individual_digits": True}, byte_level()),
    "digit_runs": sequence({"type": "Digits", "individual_digits": False}, byte_level(use_regex=True)),
}


def make_fixture(strings: list[str]) -> dict[str, Any]:
    """A tokenizer of 700 entries with an added token of every kind."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN_PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator([text for text in strings if "<" not in text], trainer)
    fixture = json.loads(tokenizer.to_str())
    first = len(fixture["model"]["vocab"])
    fixture["added_tokens"] = [
        added(first, "<|endoftext|>"),
        added(first + 1, "<|im_start|>"),
        added(first + 2, "<|im_end|>"),
        added(first + 3, "<think>", special=False),
        added(first + 4, "<|im_end|>\n", special=False),
        added(first + 5, "<left>", lstrip=True),
        added(first + 6, "<right>", rstrip=True),
        added(first + 7, "word", single_word=True, special=False),
        added(first + 8, "caf\u00e9", normalized=True, special=False),
        added(first + 9, "<both>", lstrip=True, rstrip=True, normalized=True),
    ]
    return fixture


def make_qwen2_frame(num_tokens: int = 151643) -> dict[str, Any]:
    """Qwen2's tokenizer.json without vocabulary and merges, which the test takes from that checkpoint."""
    tokens = [added(num_tokens + i, content) for i, content in enumerate(QWEN_SPECIALS)]
    tokens += [added(num_tokens + 3 + i, content, special=False) for i, content in enumerate(QWEN_WORDS)]
    return {
        "version": "1.0",
        "added_tokens": tokens,
        "normalizer": {"type": "NFC"},
        "decoder": byte_level(),
        "model": {
            "type": "BPE",
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
        },
    } | sequence(split({"Regex": QWEN_PATTERN}, "Isolated"), byte_level())


def make_qwen2(directory: Path) -> dict[str, Any]:
    vocabulary = json.loads((directory / "vocab.json").read_text(encoding="utf-8"))
    merges = (directory / "merges.txt").read_text(encoding="utf-8").split("\n")
    model = {"vocab": vocabulary, "merges": [merge for merge in merges if merge]}
    return merge_patch(make_qwen2_frame(len(vocabulary)), {"model": model})


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: members of objects are replaced one by one, null removes."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        merged.pop(key, None) if value is None else merged.update({key: merge_patch(merged.get(key), value)})
    return merged


def without_missing(spec: dict[str, Any]) -> dict[str, Any]:
    """The package wants the members that a patch removed."""
    empty = {"normalizer": None, "truncation": None, "padding": None, "post_processor": None}
    return empty | spec


def digest(tokenizer: Tokenizer, text: str) -> str:
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    return hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest()[:4]


def digests(spec: dict[str, Any], strings: list[str | bytes]) -> str:
    tokenizer = Tokenizer.from_str(json.dumps(without_missing(spec)))
    texts = [text if isinstance(text, str) else text.decode("utf-8", "replace") for text in strings]
    return "".join(digest(tokenizer, text) for text in texts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--qwen2", type=Path, required=True)
    arguments = parser.parse_args()
    strings = make_strings(random.Random(20))
    fixture = make_fixture([text for text in strings if isinstance(text, str)])
    golden: dict[str, Any] = {
        "strings": [text if isinstance(text, str) else {"hex": text.hex()} for text in strings],
        "variants": VARIANTS,
        "qwen2_frame": make_qwen2_frame(),
        "digests": {"fixture": digests(fixture, strings)},
    }
    for name, patch in VARIANTS.items():
        golden["digests"][name] = digests(merge_patch(fixture, patch), strings)
    golden["digests"]["qwen2"] = digests(make_qwen2(arguments.qwen2), strings)
    (HERE / "fixture.json").write_text(json.dumps(fixture, ensure_ascii=False) + "\n", encoding="utf-8")
    (HERE / "golden.json").write_text(json.dumps(golden, indent=0) + "\n", encoding="utf-8")
    print(f"{len(strings)} strings, {len(golden['digests'])} tokenizers")


if __name__ == "__main__":
    main()
