"""Prompts of the forms that are read, made for tests."""

import json

RULE = "─" * 64
CODE = "import torch\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x\n"


def repair_prompt(log: str, code: str = CODE, hint: str = "Check the index") -> str:
    said = f"critical_issue: Index runs over\nwhy_it_matters: It crashes\nminimal_fix_hint: {hint}\n"
    sections = (("ERROR LOG", log), ("OLD CODE (read-only)", code), ("Main Critical Problem", said))
    return (
        "FIX it.\n\n" + "".join(f"{RULE}\n{name}\n{RULE}\n{text}\n" for name, text in sections) + "\n```python\n```\n"
    )


def optimise_prompt(method: str, plan: str = "do it", code: str = CODE) -> str:
    said = json.dumps(
        {"bottleneck": "memory traffic", "optimisation method": method, "modification plan": plan}, indent=2
    )
    return f"Improve.\n\n[ARCHITECTURE FILE]\n```python\n{code}\n```\n\n[optimization instructions]\n{said}\n\nGOAL\n"
