"""Trains the small byte-level BPE of the demonstration Coder, over prompts and answers of both skills.

    python -m datasets.tokenizer.make_tokenizer --cold-start FILE --out DIR

A piece of text that merges may fill is the rest of a line with its newline and the indentation of the next one, so
that a line which programs repeat becomes one token. A digit of a number like 0.5 or 1024 is a piece of its own, that
constants be copied digit by digit; the digit of a word or an index (`log1pf`, `[0]`, `i = 0;`) is text.

It prints how many tokens a mean answer takes, by which the vocabulary's size (`--size`) was chosen.
"""

import argparse
import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from datasets.prompts_text import render_prompt

VOCABULARY_SIZE = 1536
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>")
SPLIT_PATTERN = r"(?:[^\n0-9]|(?<![0-9.])[0-9](?![0-9.]))+(?:\n[\n ]*)?|[0-9]|\n[\n ]*"


def build_tokenizer() -> Tokenizer:
    """An untrained tokenizer: split, bytes, no normaliser, no merges yet."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT_PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def train(texts: Iterator[str], size: int = VOCABULARY_SIZE) -> Tokenizer:
    """Deterministic: BPE breaks ties by token id."""
    tokenizer = build_tokenizer()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL_TOKENS),
        show_progress=False,
        max_token_length=160,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def training_texts(pairs: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Prompt and answer of each pair, without special tokens: those are never merged."""
    for pair in pairs:
        text = render_prompt("small", pair)
        for special in SPECIAL_TOKENS:
            text = text.replace(special, "\n")
        yield text
        yield pair["answer"]


def read_pairs(path: Path, limit: int) -> Iterator[dict[str, Any]]:
    """The first `limit` pairs of a file."""
    with path.open(encoding="utf-8") as file:
        for line in itertools.islice(file, limit):
            yield json.loads(line)


def save(tokenizer: Tokenizer, out: Path) -> None:
    """`tokenizer.json`, and the `tokenizer_config.json` with which transformers loads it."""
    out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(out / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "unk_token": None,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 2048,
    }
    (out / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cold-start", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=6000, help="pairs to train on")
    parser.add_argument("--size", type=int, default=VOCABULARY_SIZE)
    arguments = parser.parse_args()
    pairs = read_pairs(arguments.cold_start, arguments.limit)
    tokenizer = train(training_texts(pairs), arguments.size)
    save(tokenizer, arguments.out)
    answers = [pair["answer"] for pair in read_pairs(arguments.cold_start, arguments.limit)]
    num_tokens = sum(len(encoded) for encoded in tokenizer.encode_batch(answers))
    print(f"{tokenizer.get_vocab_size()} tokens in the vocabulary, {num_tokens / len(answers):.1f} in a mean answer")


if __name__ == "__main__":
    main()
