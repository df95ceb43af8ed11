"""What `./dev bench rollout --gpu` measured beside its targets, as far as it is measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.bench.qwen3_shapes import SHAPES
from tests.bench.rollout_gpu_work import ANSWER, CONTEXT, PEER_TOKENS, PROMPT
from tests.bench.slices import Row

COPY_SHARES = {"8B": 0.75, "0.6B": 0.50}  # of the copies' bandwidth, at batch 1
RATE_AT_64 = 1450.0  # tokens a second of 8B for each TB/s of the copies
RATE_AT_400 = 17_000.0  # of 8B, on a card with the memory for it
PEER_RATIO, PEER_BATCHES = 1.3, (1, 8, 64)
GROUP_RATIO = 5.0
LOAD_SECONDS = 10.0
LOGITS_RATIO = 1.1
FLOAT32_DIFFERENCE = 1.0  # ten-thousandths of the size of the logits

_PEERS = tuple(f"{peer} " for peer in PEER_TOKENS)  # how names of pieces begin
_RATES = ("tokens_per_second", "whole_tokens_per_second")

Results = Mapping[str, Row]  # of pieces by name


@dataclass(frozen=True)
class Figure:
    """A target and what was measured, None where nothing was. `bound` is what there would be if a step took no longer
    than copies of its bytes."""

    name: str
    value: float | None
    target: float
    unit: str = ""
    at_least: bool = True
    bound: float | None = None

    def line(self) -> str:
        """Of the table."""
        sign = ">=" if self.at_least else "<="
        target = f"{sign} {self.target:,.2f}{self.unit}"
        if self.value is None:
            return f"{self.name:<52}{'-':>14}   {target:<18}not measured"
        met = self.value >= self.target if self.at_least else self.value <= self.target
        value = f"{self.value:,.2f}{self.unit}"
        bound = f", at the rate of copies {self.bound:,.2f}{self.unit}" if self.bound else ""
        return f"{self.name:<52}{value:>14}   {target:<18}{'met' if met else 'NOT MET'}{bound}"


def engine_row(results: Results, model: str, batch: int) -> Row | None:
    """The engine's line of a model and a batch."""
    rows = results.get(f"engine {model}, batch {batch}", {}).get("rows", [])
    return next((row for row in rows if row["name"] == "decode"), None)


def decode_rate(results: Results, model: str, batch: int) -> float | None:
    """Tokens a second while all sequences decode, as the peers' are counted."""
    row = engine_row(results, model, batch)
    return row["tokens_per_second"] if row else None


def whole_rate(results: Results, model: str, batch: int) -> float | None:
    """Tokens a second from the first prompt to the last answer, as servers' are counted."""
    row = engine_row(results, model, batch)
    return row["whole_tokens_per_second"] if row else None


def peer_rates(results: Results, model: str, batch: int) -> dict[str, float]:
    """Tokens a second by peer, of several forms of attention the most."""
    rates: dict[str, float] = {}
    for name, result in results.items():
        for row in result["rows"] if name.startswith(_PEERS) else []:
            if (row["model"], row["batch"]) == (model, batch):
                rates[row["name"]] = max(row["tok_per_s"], rates.get(row["name"], 0.0))
    return rates


def copy_share(results: Results, model: str, batch: int) -> float | None:
    """The engine's rate over that of copies."""
    rate, most = decode_rate(results, model, batch), copy_rate(results, model, batch)
    return rate / most if rate and most else None


def copy_rate(results: Results, model: str, batch: int) -> float | None:
    """Tokens a second if the bytes that a step must read took as long as copies of the same run take for them."""
    ceiling = copy_tb_per_s(results)
    return ceiling * 1e12 / SHAPES[model].step_bytes(batch, CONTEXT) * batch if ceiling else None


def copy_tb_per_s(results: Results) -> float | None:
    """Of the piece `ceilings`, bytes read and written."""
    rows = results.get("ceilings", {}).get("rows", [])
    return rows[0]["copy_tb_per_s"] if rows else None


def figures(results: Results) -> Iterator[Figure]:
    """All targets."""
    for model, target in COPY_SHARES.items():
        share = copy_share(results, model, 1)
        yield Figure(f"{model}, batch 1: share of copy bandwidth", share and 100 * share, 100 * target, " %")
    whole, ceiling = whole_rate(results, "8B", 64), copy_tb_per_s(results)
    each = whole / ceiling if whole and ceiling else None
    yield Figure("8B, batch 64: tok/s with prompts, a TB/s of copies", each, RATE_AT_64)
    yield Figure("8B, batch 400: tok/s with prompts (on an H200)", whole_rate(results, "8B", 400), RATE_AT_400)
    for model in COPY_SHARES:
        for batch in PEER_BATCHES:
            rate, peers = decode_rate(results, model, batch), peer_rates(results, model, batch)
            fastest = max(peers.values(), default=None)
            ratio = rate / fastest if rate and fastest else None
            most = copy_rate(results, model, batch)
            known = f" ({len(peers)} of {len(PEER_TOKENS)})" if len(peers) < len(PEER_TOKENS) else ""
            name = f"{model}, batch {batch}: times the fastest peer{known}"
            yield Figure(name, ratio, PEER_RATIO, bound=most / fastest if most and fastest else None)
    yield Figure("group: first tokens beside prompts that share nothing", group_ratio(results), GROUP_RATIO)
    loads = [row["median_s"] for name, row in results.items() if name.startswith("load ")]
    yield Figure("load: launch to first token", max(loads, default=None), LOAD_SECONDS, " s", at_least=False)
    errors = [row["ratio"] for row in results.get("logits", {}).get("rows", [])]
    name = "logits: error beside transformers' own, worst case"
    yield Figure(name, max(errors, default=None), LOGITS_RATIO, at_least=False)
    differences = [1e4 * row["relative_difference"] for row in results.get("float32", {}).get("rows", [])]
    name = "float32: largest difference to transformers, 1e-4"
    yield Figure(name, max(differences, default=None), FLOAT32_DIFFERENCE, at_least=False)


def group_ratio(results: Results) -> float | None:
    """Time until the last first token of prompts that share nothing, over that of one group."""
    for name, result in results.items():
        for row in result.get("rows", []):
            if name.startswith("group ") and row["name"] == "group":
                return row["separate_first_token_ms_p99"] / row["together_first_token_ms_p99"]
    return None


def print_tables(results: Results) -> None:
    """Rates, other lines as they are, targets."""
    header = "".join(f"{peer:>14}" for peer in PEER_TOKENS)
    print(f"\n{'tokens a second':<20}{'decoding':>12}{'all':>12}{header}{'times':>8}{'of copies':>11}", end="")
    print(f"{'first token, ms':>24}")
    for name in results:
        if name.startswith("engine "):
            model, _, batch = name.removeprefix("engine ").partition(", batch ")
            print(rate_line(results, model, int(batch)))
    print(
        f"Engine: prompts of {PROMPT}, answers of {ANSWER:,}. Peers: "
        + ", ".join(f"{peer} {steps} steps" for peer, steps in PEER_TOKENS.items())
        + f" around a context of {CONTEXT}, prompts and compilation not timed."
    )
    print()
    for name, result in results.items():
        if result.get("failure"):
            print(f"{name} ended early: {result['failure']}")
        if not name.startswith("engine "):
            for row in result.get("rows", [result]):
                print(f"{name}: " + ", ".join(f"{key} {_text(value)}" for key, value in row.items()))
    print()
    for figure in figures(results):
        print(figure.line())
    for fault in faults(results):
        print(f"fault: {fault}")


def rate_line(results: Results, model: str, batch: int) -> str:
    """One model and batch: the engine, its peers, and its share of the copies' bandwidth."""
    row = engine_row(results, model, batch) or {}
    peers = peer_rates(results, model, batch)
    columns = "".join(f"{peers[peer]:14,.0f}" if peer in peers else f"{'-':>14}" for peer in PEER_TOKENS)
    times = f"{row['tokens_per_second'] / max(peers.values()):8.2f}" if row and peers else f"{'-':>8}"
    share = copy_share(results, model, batch)
    rates = "".join(f"{row[key]:12,.0f}" if row else f"{'-':>12}" for key in _RATES)
    first = " to ".join(f"{row[key]:,.1f}" for key in ("first_token_ms_p50", "first_token_ms_p99") if key in row)
    return f"{f'{model}, batch {batch}':<20}{rates}{columns}{times}{f'{share:.0%}' if share else '-':>11}{first:>24}"


def faults(results: Results) -> list[str]:
    """What must not be, whatever the rates are."""
    found = []
    for name, result in results.items():
        for row in result.get("rows", []):
            if row.get("batch_invariant") and row.get("equal_log_probs") is False:
                found.append(f"{name}: a sample depends on its company from token {row['equal_tokens']} on")
            if row.get("chunks_equal") is False:
                found.append(f"{name}: {row['name']}: logits depend on how the prompt is divided")
            if row.get("ok") is False:
                found.append(f"{name}: {row}")
    return found


def _text(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
