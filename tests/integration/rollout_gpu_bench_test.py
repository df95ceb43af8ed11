"""The benchmark of the engine on a GPU: over a program that only pretends to decode, and its peers at tiny sizes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.bench.json_process import ROOT, run_json
from tests.bench.qwen3_shapes import SHAPES
from tests.bench.rollout_gpu import main
from tests.bench.rollout_gpu_generate import Load, static_rows
from tests.bench.rollout_gpu_peer import ATTENTIONS, StaticDecoder, sample, weights_of
from tests.bench.rollout_gpu_table import Figure, copy_share, faults, figures, peer_rates
from tests.bench.rollout_gpu_work import ATTENTIONS as FORMS
from tests.bench.rollout_gpu_work import CONTEXT, PEER_TOKENS, Work
from tests.bench.slices import Row, read_lines
from tests.gpu.float32_peer import Engine, devices_for, transformers_answer
from tests.gpu.float32_peer import compare as compare_float32
from tests.gpu.logits_peer import (
    CASES,
    NUM_TOKENS,
    RATIO_MAX,
    Program,
    compare,
    device_program,
    transformers_logits,
    write_directory,
)

# Says what engine_gpu_rates says. Rates grow with the batch.
_ENGINE = """#!{python}
import json, sys
flags = dict(zip(sys.argv[1::2], sys.argv[2::2]))
def say(name, **row):
    print(json.dumps(dict(name=name, **row)), flush=True)
print("a library's greeting", json.dumps([1]))
say("device", copy_bytes_per_second=3e12, batch_invariant=True)
if "--invariance" in sys.argv:
    say("invariance", batch_invariant=True, tokens=200, equal_tokens=7, equal_log_probs={equal})
    say("invariance", batch_invariant=False, tokens=200, equal_tokens=5, equal_log_probs=False)
elif "--churn" in flags:
    say("churn", jobs=int(flags["--churn"]), ok=True)
elif "--group" in flags:
    say("group", together_first_token_ms_p99=20.0, separate_first_token_ms_p99=160.0)
else:
    batch = int(flags["--batch"])
    say("decode", batch=batch, answer_tokens=1, tokens_per_second=100.0 * batch, whole_tokens_per_second=90.0 * batch,
        first_token_ms_p50=5.0, first_token_ms_p99=10.0)
"""


@pytest.fixture
def binaries(tmp_path: Path) -> Path:
    return _write_engine(tmp_path, equal=True)


def _write_engine(folder: Path, equal: bool) -> Path:
    program = folder / "engine_gpu_rates"
    program.write_text(_ENGINE.format(python=sys.executable, equal=equal))
    program.chmod(0o755)
    return folder


def _words(binaries: Path, only: str, *more: str) -> list[str]:
    out = str(binaries / "rollout_gpu.jsonl")
    fixed = ["--gpu", "--device", "cpu", "--models", "tiny", "--batches", "1,2", "--out", out, "--only", only]
    return [*fixed, "--binaries", str(binaries), *more]


def test_each_model_and_batch_is_a_piece_and_is_not_measured_again(
    binaries: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(_words(binaries, "engine")) == 0
    lines = read_lines(binaries / "rollout_gpu.jsonl")
    assert [line["piece"] for line in lines] == ["engine tiny, batch 1", "engine tiny, batch 2"]
    assert [line["result"]["rows"][-1]["tokens_per_second"] for line in lines] == [100.0, 200.0]
    assert main(_words(binaries, "engine", "--resume")) == 0
    assert read_lines(binaries / "rollout_gpu.jsonl") == lines
    assert "tiny, batch 2" in capsys.readouterr().out


def test_another_program_is_measured_anew(binaries: Path) -> None:
    assert main(_words(binaries, "engine")) == 0
    _write_engine(binaries, equal=False)
    assert main(_words(binaries, "engine", "--resume")) == 0
    assert len(read_lines(binaries / "rollout_gpu.jsonl")) == 4


def test_first_tokens_of_a_group_stand_beside_as_many_prompts(
    binaries: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(_words(binaries, "group")) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("group: first tokens"))
    assert "8.00" in line and line.endswith("met")  # 160 ms beside 20


def test_a_sample_that_depends_on_its_company_fails_the_run_in_the_invariant_mode_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(_words(_write_engine(tmp_path, equal=True), "invariance")) == 0
    assert main(_words(_write_engine(tmp_path, equal=False), "invariance")) == 1
    assert "fault: invariance: a sample depends on its company from token 7 on" in capsys.readouterr().out


def test_a_program_that_is_missing_costs_its_pieces_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(_words(tmp_path, "churn")) == 1
    assert "./dev build core builds it" in capsys.readouterr().out
    assert main(_words(_write_engine(tmp_path, equal=True), "churn", "--resume")) == 0


def test_the_engine_loads_what_was_written(binaries: Path) -> None:
    assert main(_words(binaries, "load")) == 0
    (line,) = read_lines(binaries / "rollout_gpu.jsonl")
    assert line["result"]["bytes"] > SHAPES["tiny"].weight_bytes
    assert len(line["result"]["seconds"]) == 3 and not Path(line["result"]["folder"]).exists()


def test_a_program_that_hangs_is_ended_and_what_it_said_is_kept() -> None:
    # Its child holds the output, too.
    hangs = "import subprocess; print('{\"name\": 1}', flush=True); subprocess.run(['sleep', '60'])"
    answer = run_json([sys.executable, "-c", hangs], seconds_max=5)
    assert answer.rows == [{"name": 1}] and answer.failure == "not done after 5 s"
    with pytest.raises(RuntimeError, match="not done"):
        answer.checked()


def test_a_slice_that_is_ended_ends_what_it_has_started(tmp_path: Path) -> None:
    program = tmp_path / "engine_gpu_rates"
    program.write_text(f"#!/bin/sh\nsleep 100 & echo $! > {tmp_path}/child; wait\n")
    program.chmod(0o755)
    command = [sys.executable, "-m", "tests.bench.rollout_gpu", *_words(tmp_path, "churn")]
    bench = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    deadline = time.monotonic() + 60
    while not (tmp_path / "child").exists() or not (tmp_path / "child").read_text():
        assert time.monotonic() < deadline, "no piece began"
        time.sleep(0.05)
    bench.terminate()
    assert bench.wait(timeout=30) == 128 + signal.SIGTERM
    child = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}")
    while child.exists() and "Z" not in (child / "stat").read_text().rpartition(")")[2].split()[0]:
        assert time.monotonic() < deadline, "the piece goes on"
        time.sleep(0.05)


def test_a_program_that_fails_says_why() -> None:
    answer = run_json([sys.executable, "-c", "import sys; sys.exit('no memory')"], seconds_max=60)
    assert answer.failure == "status 1: no memory"


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_the_plain_decoder_has_the_logits_of_transformers(attention: str) -> None:
    from transformers import AutoModelForCausalLM

    torch.manual_seed(1)
    shape = SHAPES["tiny"]
    model = AutoModelForCausalLM.from_config(shape.transformers_config(), dtype=torch.float32).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0, 0.3)
    ids = torch.randint(shape.vocab_size, (3, 12))
    with torch.inference_mode():
        expected = model(ids).logits[:, 7:]
        decoder = StaticDecoder(shape, weights_of(shape, model.state_dict()), 3, 16, attention)
        steps = [(ids[:, :8], torch.arange(8)), *((ids[:, i : i + 1], torch.tensor([i])) for i in range(8, 12))]
        logits = torch.stack([decoder.logits(tokens, positions) for tokens, positions in steps], 1)
    # Sums in another order: some 100 of float32's 1.2e-7, of logits of this size.
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5 * float(expected.abs().max()))


def test_samples_of_the_plain_decoder_have_their_probabilities() -> None:
    torch.manual_seed(1)
    logits = torch.tensor([0.5, 0.3, 0.2]).log().expand(20_000, 3)
    shares = torch.bincount(sample(logits)[:, 0]) / 20_000
    torch.testing.assert_close(shares, torch.tensor([0.5, 0.3, 0.2]), rtol=0, atol=0.015)  # 4 standard deviations


@pytest.mark.parametrize("peer", PEER_TOKENS)
def test_peers_measure_each_batch(peer: str) -> None:
    words = [peer, "--model", "tiny", "--batch", "1,2", "--context", "24", "--tokens", "4", "--device", "cpu"]
    rows = run_json([sys.executable, "-m", "tests.bench.rollout_gpu_peers", *words], seconds_max=120).checked()
    assert [(row["name"], row["model"], row["batch"]) for row in rows] == [(peer, "tiny", 1), (peer, "tiny", 2)]
    assert all(row["tok_per_s"] > 0 for row in rows)


def test_a_load_that_cannot_run_costs_its_own_row_alone() -> None:
    good, bad = Load("tiny", 1, 24, 4, "cpu"), Load("tiny", -1, 24, 4, "cpu")
    rows = []
    with pytest.raises(RuntimeError, match="tiny, batch -1: RuntimeError"):
        for row in static_rows([good, bad]):
            rows.append(row)
    assert [(row["name"], row["batch"]) for row in rows] == [("static", 1)]


def test_who_compiles_too_long_is_not_waited_for() -> None:
    with pytest.raises(RuntimeError, match="tiny, batch 1: no answer in time"):
        list(static_rows([Load("tiny", 1, 24, 4, "cpu")], compile_seconds_max=0.1))


def test_the_forms_of_attention_are_those_that_the_peer_has() -> None:
    assert set(FORMS) == set(ATTENTIONS)


def test_shapes_have_the_parameters_of_their_names() -> None:
    for name in ("0.6B", "1.7B", "4B", "8B", "14B", "32B"):
        shape = SHAPES[name]
        embedding = 0 if shape.tie_word_embeddings else shape.vocab_size * shape.hidden_size
        assert (shape.weight_bytes / 2 + embedding) / 1e9 == pytest.approx(float(name[:-1]), rel=0.06)


def _results() -> dict[str, Row]:
    return {
        "ceilings": {"rows": [{"name": "ceilings", "copy_tb_per_s": 3.0}]},
        "engine 8B, batch 1": {
            "rows": [{"name": "decode", "tokens_per_second": 150.0, "whole_tokens_per_second": 140.0}]
        },
        "engine 8B, batch 64": {
            "rows": [{"name": "decode", "tokens_per_second": 4500.0, "whole_tokens_per_second": 4350.0}]
        },
        "pytorch 8B, flex, batch 1": {"rows": [{"name": "pytorch", "model": "8B", "batch": 1, "tok_per_s": 100.0}]},
        "pytorch 8B, sdpa, batch 1": {"rows": [{"name": "pytorch", "model": "8B", "batch": 1, "tok_per_s": 90.0}]},
        "pytorch 8B, flex, batch 64": {"rows": [{"name": "pytorch", "model": "8B", "batch": 64, "tok_per_s": 3000.0}]},
        "static 8B": {"rows": [{"name": "static", "model": "8B", "batch": 1, "tok_per_s": 125.0}]},
        "static 0.6B": {"rows": [{"name": "static", "model": "0.6B", "batch": 1, "tok_per_s": 300.0}]},
        "logits": {"rows": [{"name": "a", "ratio": 0.9}, {"name": "b", "ratio": 1.2}]},
        "float32": {"rows": [{"name": "a", "relative_difference": 3e-6}]},
    }


def test_the_share_of_copies_counts_weights_and_the_mean_context() -> None:
    weights = 36 * (4096 * 6144 + 4096 * 4096 + 3 * 4096 * 12288) + 151936 * 4096
    step = 2 * weights + CONTEXT * 36 * 2 * 8 * 128 * 2
    assert copy_share(_results(), "8B", 1) == pytest.approx(150 * step / 3e12)


def test_the_fastest_peer_of_a_batch_is_the_one_to_beat() -> None:
    assert peer_rates(_results(), "8B", 1) == {"pytorch": 100.0, "static": 125.0}
    table = {figure.name: figure for figure in figures(_results())}
    assert table["8B, batch 1: times the fastest peer (2 of 3)"].value == pytest.approx(1.2)
    assert table["8B, batch 64: times the fastest peer (1 of 3)"].value == pytest.approx(1.5)
    copies = 3e12 / SHAPES["8B"].step_bytes(1, CONTEXT)  # tokens a second
    assert table["8B, batch 1: times the fastest peer (2 of 3)"].bound == pytest.approx(copies / 125)
    assert table["8B, batch 64: tok/s with prompts, a TB/s of copies"].value == pytest.approx(1450)
    assert table["logits: error beside transformers' own, worst case"].line().endswith("NOT MET")
    assert table["float32: largest difference to transformers, 1e-4"].value == pytest.approx(0.03)
    assert table["load: launch to first token"].line().endswith("not measured")


def test_a_target_is_met_at_its_value() -> None:
    assert Figure("a", 1.3, 1.3).line().endswith(" met")
    assert Figure("a", 10.01, 10.0, at_least=False).line().endswith("NOT MET")


def test_400_sequences_are_for_the_engine_alone(tmp_path: Path) -> None:
    names = [piece.name for piece in Work(["0.6B", "8B"], [1, 8, 64], [400], tmp_path).pieces()]
    assert [name for name in names if "400" in name] == ["engine 0.6B, batch 400", "engine 8B, batch 400"]
    assert names[0] == "ceilings" and names[-1] == "transformers 0.6B"
    assert len(set(names)) == len(names)


def test_an_error_is_told_by_what_transformers_itself_errs() -> None:
    def equal(directory: Path, ids: Sequence[int], chunks: Sequence[int]) -> list[Tensor]:
        return [transformers_logits(directory, ids, torch.bfloat16, "cpu") for _ in chunks]

    def turned(directory: Path, ids: Sequence[int], chunks: Sequence[int]) -> list[Tensor]:
        logits = []
        for chunk in chunks:
            config = json.loads((directory / "config.json").read_text())
            config["rope_parameters"]["rope_theta"] *= 1.02
            (directory / "config.json").write_text(json.dumps(config))
            logits += equal(directory, ids, [chunk])
        return logits

    right, wrong = compare(CASES[0], equal, "cpu"), compare(CASES[0], turned, "cpu")
    assert right["ratio"] == pytest.approx(1.0) and right["chunks_equal"]
    assert wrong["ratio"] > 2 * RATIO_MAX and not wrong["chunks_equal"]


def test_float32_is_judged_by_logits_and_by_every_greedy_token(tmp_path: Path) -> None:
    case = replace(CASES[0], more={"intermediate_size": 448})
    torch.manual_seed(1)  # as compare_float32 draws them
    ids = torch.randint(case.vocab_size, (NUM_TOKENS,)).tolist()
    write_directory(case, tmp_path, torch.float32)
    logits = transformers_logits(tmp_path, ids, torch.float32, "cpu")
    answer = transformers_answer(tmp_path, ids, "cpu")

    def engine(tokens: list[int]) -> Engine:
        row = {"token_ids": tokens, "log_probs": answer.log_probs.tolist(), "token_ms": 1.0}
        return lambda directory, given, devices: (
            [{"device": device, **row} for device in devices] if given == ids else []
        )

    def program(added: float) -> Program:
        return lambda directory, given, chunks: [logits + added for _ in chunks]

    parted = [*answer.token_ids[:150], -1, *answer.token_ids[151:]]
    right = compare_float32(case, program(0), engine(answer.token_ids), "cpu", ["cpu", "cuda:0"])
    shifted = compare_float32(case, program(3e-3), engine(answer.token_ids), "cpu", ["cpu"])
    wrong = compare_float32(case, program(0), engine(parted), "cpu", ["cpu"])
    assert right["ok"] and right["equal_tokens"] == {"cpu": 200, "cuda:0": 200} and right["log_prob_difference"] < 1e-5
    assert not shifted["ok"] and shifted["relative_difference"] > 1e-4
    assert not wrong["ok"] and wrong["equal_tokens"] == {"cpu": 150}
    assert faults({"float32": {"rows": [right]}}) == [] and len(faults({"float32": {"rows": [shifted, wrong]}})) == 2


def test_gpus_share_what_their_number_divides() -> None:
    assert devices_for(CASES[0], 0) == ["cpu"]
    assert devices_for(CASES[0], 1) == ["cpu", "cuda:0"]
    assert devices_for(CASES[0], 2) == ["cpu", "cuda:0", "cuda:0,1"]
    assert devices_for(CASES[6], 2) == ["cpu", "cuda:0"]  # three KV heads


def test_cases_have_each_family_group_size_and_head_dim() -> None:
    assert {case.family for case in CASES} == {"Qwen3", "Qwen2", "Llama"}
    assert {case.num_attention_heads // case.num_key_value_heads for case in CASES} == {1, 5, 8}
    assert {(case.head_dim, case.tied) for case in CASES} == {(64, True), (64, False), (128, True), (128, False)}
    assert len({case.name for case in CASES}) == len(CASES)


def test_a_program_for_logits_that_fails_says_why(tmp_path: Path) -> None:
    program = tmp_path / "device_logits"
    program.write_text("#!/bin/sh\necho no such GPU >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(RuntimeError, match="no such GPU"):
        device_program(program)(tmp_path, [1, 2], [2])
