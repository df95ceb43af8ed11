"""Makes the prompts that our chat templates are compared with, by `apply_chat_template` of the `transformers` package.

    python tests/data/chat_templates/make_golden.py --templates DIR

DIR holds the original templates of the model families, which are not in this repository: trl/chat_templates of
https://github.com/huggingface/trl keeps them as their checkpoints ship them (revision f2cd5771). Writes `golden.json`:
conversations of ours, and for each template its SHA-256 and the text of every conversation.
"""

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

from transformers.utils.chat_template_utils import render_jinja_template

HERE = Path(__file__).parent
# Template, and what is handed to it beside the messages.
RENDERED: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen2_5": ("qwen2_5.jinja", {}),
    "qwen3": ("qwen3.jinja", {}),
    "qwen3_no_thinking": ("qwen3.jinja", {"enable_thinking": False}),
    "qwen3_instruct_2507": ("qwen3_instruct_2507.jinja", {}),
    "llama3": ("llama3.jinja", {}),
    "llama3_1": ("llama3_1.jinja", {}),
    "llama3_2": ("llama3_2.jinja", {"date_string": "05 Nov 2026"}),
}


def system(text: str) -> dict[str, str]:
    return {"role": "system", "content": text}


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def assistant(text: str, reasoning: str | None = None) -> dict[str, str]:
    kept_apart = {} if reasoning is None else {"reasoning_content": reasoning}
    return {"role": "assistant", "content": text, **kept_apart}


THOUGHT = "<think>\n\n  Two passes.\n</think>\n\nOne pass."
CONVERSATIONS = [
    [user("Make it fast.")],
    [system("You write C++."), user("relu(2x + 1)")],
    [system("\n  indented\n\n"), user("\tspaces \u00a0\n around\u2028 ")],
    [user("")],
    [system("")],
    [user("a"), assistant("b"), user("c")],
    [user("a"), system("in between"), assistant("b"), user("c")],
    [user("a"), assistant(THOUGHT), user("c")],
    [user("a"), assistant(THOUGHT)],
    [user("a"), assistant("</think>cut"), assistant("\n\nplain\n")],
    [user("a"), assistant("<think>x</think>y</think>\nz"), assistant("<think>1<think>\n2\n\n</think>\n\n3")],
    [user("a"), assistant("b", "kept apart\n"), user("c"), assistant("\nd", "\n\nwhy\n")],
    [user("a"), assistant("b", ""), assistant("</think>d", "why")],
    [user("a"), assistant(THOUGHT), user("<tool_response>\n4\n</tool_response>"), assistant(THOUGHT)],
    [assistant(THOUGHT), assistant("again")],
    [user("Grüße, 世界 🎉\r\n```cpp\nint run();\n```\n"), assistant("e\u0301"), user("  two\n\n\nlines")],
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--templates", type=Path, required=True)
    folder = parser.parse_args().templates
    golden: dict[str, Any] = {"conversations": CONVERSATIONS, "templates": {}}
    for name, (file, options) in RENDERED.items():
        text = (folder / file).read_text()
        rendered: Any = render_jinja_template(
            CONVERSATIONS,
            chat_template=text,
            add_generation_prompt=True,
            bos_token="<|begin_of_text|>",
            **options,
        )
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        golden["templates"][name] = {"file": file, "sha256": sha256, "options": options, "prompts": rendered[0]}
    (HERE / "golden.json").write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
