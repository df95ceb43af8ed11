"""The small tokenizer: lossless, short, reproducible, and what transformers loads."""

import statistics
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from datasets.cold_start.make_cold_start import make_pairs, make_validation_pairs
from datasets.prompts_text import render_prompt
from datasets.tasks.make_tasks import make_cold_start_tasks
from datasets.tokenizer.make_tokenizer import SPECIAL_TOKENS, VOCABULARY_SIZE, train, training_texts

_FOLDER = Path("datasets/tokenizer/small")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(_FOLDER / "tokenizer.json"))


@pytest.fixture(scope="module")
def pairs() -> list[dict[str, Any]]:
    return list(make_validation_pairs(make_cold_start_tasks()[-1000:], seed=9))


@pytest.mark.parametrize("text", ["", " ", "\n\n  \n", "x[0] = 12.5f;\n", "größer ≥ 日本 🚀", "\t\r\n\x00", "[1024]"])
def test_any_text_survives(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_prompts_and_answers_survive(tokenizer: Tokenizer, pairs: list[dict[str, Any]]) -> None:
    for pair in pairs:
        text = render_prompt("small", pair) + pair["answer"] + "<|im_end|>"
        assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_special_tokens_come_first_and_the_vocabulary_is_full(tokenizer: Tokenizer) -> None:
    assert [tokenizer.token_to_id(token) for token in SPECIAL_TOKENS] == list(range(len(SPECIAL_TOKENS)))
    assert tokenizer.get_vocab_size() == VOCABULARY_SIZE


@pytest.mark.parametrize("number", ["1024", "0.5", "12.75"])
def test_digits_of_a_number_are_single_tokens(tokenizer: Tokenizer, number: str) -> None:
    assert [tokenizer.decode([token]) for token in tokenizer.encode(number).ids] == list(number)


@pytest.mark.parametrize(
    "text", ["for (long i = 0; i < n; ++i) {\n    ", "v = log1pf(fabsf(v));\n      ", "return 0;\n"]
)
def test_a_line_that_programs_repeat_is_one_token(tokenizer: Tokenizer, text: str) -> None:
    assert len(tokenizer.encode(text).ids) == 1


def test_answers_are_short(tokenizer: Tokenizer, pairs: list[dict[str, Any]]) -> None:
    answers = [len(tokenizer.encode(pair["answer"]).ids) for pair in pairs]
    prompts = [len(tokenizer.encode(render_prompt("small", p)).ids) for p in pairs if p["skill"] == "generate"]
    assert statistics.mean(answers) < 42
    assert statistics.mean(prompts) < 45
    assert max(answers) < 200


def test_training_gives_the_file_that_is_checked_in(tokenizer: Tokenizer) -> None:
    texts = list(training_texts(make_pairs(make_cold_start_tasks()[:-128], 6000, seed=1)))
    assert train(iter(texts)).to_str() == tokenizer.to_str()


def test_transformers_loads_the_same_tokenizer(tokenizer: Tokenizer, pairs: list[dict[str, Any]]) -> None:
    transformers = pytest.importorskip("transformers")
    loaded = transformers.AutoTokenizer.from_pretrained(str(_FOLDER))
    for pair in pairs[:20]:
        text = render_prompt("small", pair) + pair["answer"]
        assert loaded(text, add_special_tokens=False)["input_ids"] == tokenizer.encode(text).ids
