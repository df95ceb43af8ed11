"""From keys to a page and to a file that holds all of them."""

import yaml

from cli import config_reference
from cli.config_reference import Key

_KEYS = [
    Key("trainer.x", "1", "an integer", "steps", "Counts."),
    Key("trainer.rate", "1e-06", "a number", "", "Falls."),
    Key("trainer.in", "", "a section", "", "Within."),
    Key("trainer.in.y", '"a"', "text", "", "Names."),
    Key("model.head_dim", "128", "an integer", "", "Width."),
    Key("model.vocab_size", "0", "an integer", "tokens", "Size."),
    Key("model.path", '""', "a path", "", "Folder."),
    Key("reward_service.tenants", "", "a section", "", "Who."),
    Key("reward_service.tenants.NAME", "", "a section", "", "One."),
    Key("reward_service.tenants.NAME.share", "1", "a number", "", "Part."),
]


def test_sections_and_fields_of_a_config_json_are_no_keys_of_ours() -> None:
    assert config_reference.count(_KEYS) == 5


def test_the_page_has_a_table_for_each_section() -> None:
    page = config_reference.document(_KEYS)
    assert "There are 5 keys" in page
    assert "| `trainer.x` | `1` | steps | an integer | Counts. |" in page
    assert "### trainer.in\n\nWithin.\n" in page
    assert "| `trainer.in.y` | `a` |  | text | Names. |" in page
    assert "| `model.vocab_size` |  | tokens | an integer | Size. |" in page


def test_the_file_has_every_key_with_its_default_where_that_is_another() -> None:
    text = config_reference.example(
        "# Head.", _KEYS, {"trainer": {"x": 3, "in": {"y": "a"}}, "model": {"vocab_size": 8}}
    )
    assert text.startswith("# Head.\n\ntrainer:\n  # Counts. (steps; an integer; default 1)\n  x: 3\n")
    assert "  # Within.\n  in:\n    # Names. (text)\n    y: a\n" in text
    assert "  # Size. (tokens; an integer)\n  vocab_size: 8\n" in text
    assert '  path: ""\n' in text
    assert "  rate: 1e-06\n" in text
    assert yaml.safe_load(text)["reward_service"] is None


def test_a_tenant_is_a_comment_that_becomes_one_without_its_marks() -> None:
    text = config_reference.example("# Head.", _KEYS[-3:], {})
    assert text.endswith(
        "reward_service:\n  # Who.\n  # tenants:\n  #   # One.\n  #   NAME:\n  #     # Part. (a number)\n"
        "  #     share: 1\n"
    )
    without = text.replace("  # tenants:", "  tenants:").replace("  #  ", "   ")
    assert yaml.safe_load(without) == {"reward_service": {"tenants": {"NAME": {"share": 1}}}}
