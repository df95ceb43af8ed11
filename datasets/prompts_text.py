"""Renders a prompt template for a pair: the named slots `{{reference}}`, `{{previous}}`, `{{finding}}`, ..."""

import re
from pathlib import Path
from typing import Any

_PROMPTS = Path(__file__).resolve().parent / "prompts"


def render_prompt(style: str, pair: dict[str, Any]) -> str:
    """The template `prompts/<style>/<skill>.txt`, byte for byte, with every slot replaced once and not rescanned."""
    template = (_PROMPTS / style / f"{pair['skill']}.txt").read_text(encoding="utf-8")
    values = {"reference": pair["reference_source"], "previous": pair["previous_source"], **pair["feedback"]}
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: values[slot[1]], template)
