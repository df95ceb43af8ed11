"""Which tensors of a model are plain weights, and that they can be replaced."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "reward_service" / "jail"))
from plain_weights import plain_weights  # noqa: E402


class Inner(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.ones(3)


class Outer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.turned = self.linear.weight.t()
        self.inner = Inner()
        self.register_buffer("saved", torch.ones(3))
        self.register_buffer("unsaved", torch.ones(3), persistent=False)
        self.several = [torch.ones(3), 4, torch.arange(3)]
        self.named = {"a": torch.ones(3)}
        self.count = torch.arange(3)
        self.nothing = torch.empty(0)


def test_what_state_dict_lacks_is_found_where_it_is() -> None:
    places = plain_weights(Outer())
    assert set(places) == {"inner.scale", "unsaved", "several.0", "named.a"}


def test_a_replaced_weight_is_the_one_that_the_model_uses() -> None:
    model = Outer()
    for index, place in enumerate(plain_weights(model).values()):
        place.put(torch.full((3,), 7.0 + index))
    assert float(model.inner.scale[0]) >= 7 and float(model.named["a"][0]) >= 7
    assert model.get_buffer("unsaved")[0] >= 7 and torch.as_tensor(model.several[0])[0] >= 7


def test_what_is_no_module_has_attributes_too() -> None:
    class Plain:
        def __init__(self) -> None:
            self.weight = torch.ones(3)

    assert set(plain_weights(Plain())) == {"weight"}
    assert plain_weights(object()) == {}
