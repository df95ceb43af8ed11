"""A script for confined_python: searches sizes under which a reference fits a budget, then runs it.

Reads a JSON file {"pieces", "values", "orders", "budget"}; prints a line {"values", "input_bytes", "reference_ms", ...}
or {"failed": reason}. Sizes are tried on Torch's meta device, which computes shapes only; what fits runs for real. The
program can forge what is printed and so spoils its own task only. Imports nothing of ours: it runs alone.
"""

import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_FLOORS = ((4, 16, 16), (1, 4, 4))  # of a constant by its order; the second once the first is reached
_STEPS_MAX = 120
_SEEDS = (11, 12)
_CALLS = 3

Values = list[int]


class Failed(Exception):
    """Why there are no sizes."""


@dataclass
class Demand:
    """What a program under given sizes needs."""

    input_bytes: float = math.inf
    output_bytes: float = math.inf
    parameter_bytes: float = math.inf
    operations: float = math.inf


def _tensors(value: Any) -> Iterator[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for child in value:
            yield from _tensors(child)
    elif isinstance(value, dict):
        for child in value.values():
            yield from _tensors(child)


def _bytes(value: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in _tensors(value))


def _defined(source: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "task"}
    exec(compile(source, "<reference>", "exec"), namespace)
    return namespace


def demand_of(source: str) -> Demand:
    """By shapes alone. Raises whatever the program raises."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    with torch.device("meta"), torch.no_grad():
        names = _defined(source)
        model = names["Model"](*names["get_init_inputs"]())
        inputs = names["get_inputs"]()
        with FlopCounterMode(display=False) as counter:
            outputs = model(*inputs)
        return Demand(_bytes(inputs), _bytes(outputs), _bytes(model.state_dict()), counter.get_total_flops())


def excess(demand: Demand, budget: dict[str, float]) -> float:
    """How far over the budget, in halvings over all its parts; 0 where it fits."""
    return sum(max(0.0, math.log2(max(value, 1) / budget[name])) for name, value in asdict(demand).items())


class Search:
    """Halves one constant at a time, batches first, while the program stays valid and its excess shrinks."""

    def __init__(self, task: dict[str, Any], demand: Callable[[str], Demand] = demand_of) -> None:
        self._pieces: list[str] = task["pieces"]
        self._orders: list[int] = task["orders"]
        self._budget: dict[str, float] = task["budget"]
        self._first: Values = task["values"]
        self._demand = demand

    def source(self, values: Values) -> str:
        parts = (f"{value}{piece}" for value, piece in zip(values, self._pieces[1:], strict=True))
        return self._pieces[0] + "".join(parts)

    def excess(self, values: Values) -> float:
        """Infinite for sizes under which the program is not valid."""
        try:
            return excess(self._demand(self.source(values)), self._budget)
        except Exception:
            return math.inf

    def _moves(self, values: Values, floors: tuple[int, ...]) -> Iterator[Values]:
        """Single constants by order and size; then all constants of one value together, for those that must agree."""
        able = [i for i, v in enumerate(values) if v // 2 >= floors[self._orders[i]]]
        for index in sorted(able, key=lambda i: (self._orders[i], -values[i])):
            yield [v // 2 if i == index else v for i, v in enumerate(values)]
        for value in sorted({values[i] for i in able}, reverse=True):
            if values.count(value) > 1:
                yield [v // 2 if v == value else v for v in values]

    def step(self, values: Values, now: float) -> tuple[Values, float] | None:
        """The first move that is valid and lowers the excess; nothing when there is none."""
        for floors in _FLOORS:
            for moved in self._moves(values, floors):
                after = self.excess(moved)
                if after < now:
                    return moved, after
        return None

    def fit(self, values: Values) -> Values:
        """Raises Failed."""
        try:
            demand = self._demand(self.source(values))
        except Exception as error:
            raise Failed(f"it does not run on shapes alone: {type(error).__name__}: {error}") from error
        now = excess(demand, self._budget)
        for _ in range(_STEPS_MAX):
            if now == 0:
                return values
            found = self.step(values, now)
            if found is None:
                break
            values, now = found
        raise Failed(f"no constant brings it within the budget: {self._over(values)}")

    def smaller(self, values: Values) -> Values:
        """One more halving for a program that fits and is still slow. Raises Failed."""
        for floors in _FLOORS:
            for moved in self._moves(values, floors):
                if math.isfinite(self.excess(moved)):
                    return moved
        raise Failed("no constant makes it fast enough")

    def _over(self, values: Values) -> str:
        demand = asdict(self._demand(self.source(values)))
        over = (f"{name} {value:.4g}, at most {self._budget[name]:.4g}" for name, value in demand.items())
        return "; ".join(text for text, name in zip(over, demand, strict=True) if demand[name] > self._budget[name])


def reference_ms(source: str) -> float:
    """Milliseconds of one call on one thread. Raises Failed for a program that cannot be judged by."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(_SEEDS[0])
    names = _defined(source)
    model = names["Model"](*names["get_init_inputs"]())
    inputs = names["get_inputs"]()

    def call() -> list[Any]:
        with torch.no_grad():
            return [t.clone() for t in _tensors(model(*[x.clone() if hasattr(x, "clone") else x for x in inputs]))]

    first, second = call(), call()
    if not first:
        raise Failed("it returns no tensor")
    if not all(torch.equal(a, b) for a, b in zip(first, second, strict=True)):
        raise Failed("two runs on the same inputs differ")
    if not all(bool(torch.isfinite(t).all()) for t in first if t.is_floating_point()):
        raise Failed("it returns NaN or infinity")
    times = []
    for _ in range(_CALLS):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(times)


def search_sizes(task: dict[str, Any]) -> dict[str, Any]:
    """The line that is printed. Raises Failed, and whatever the program raises."""
    search = Search(task)
    values = search.fit(task["values"])
    for _ in range(_STEPS_MAX):
        milliseconds = reference_ms(search.source(values))
        if milliseconds <= task["reference_ms_max"]:
            demand = asdict(demand_of(search.source(values)))
            return {"values": values, "reference_ms": milliseconds, **demand}
        values = search.smaller(values)
    raise Failed("no constant makes it fast enough")


def main() -> None:
    sys.path += sys.argv[2:]
    try:
        result = search_sizes(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    except Exception as error:
        reason = str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"
        result = {"failed": reason[:300]}
    print("\n" + json.dumps(result))


if __name__ == "__main__":
    main()
