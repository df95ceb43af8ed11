"""Reports every breach of the tree's rules; exit status 1 if there is one.

python -m tests.tidy [--root FOLDER] [--accept]
"""

import argparse
import json
import sys
from pathlib import Path

from tests.tidy import layers, links, messages, names, shape, words
from tests.tidy.tree import Finding, Tree, read_tree


def all_findings(tree: Tree) -> list[Finding]:
    """Findings of every rule, by path and line."""
    table = layers.read_table(tree.texts.get("ARCHITECTURE.md", ""))
    found = [finding for rule in layers.RULES for finding in rule(tree, table)]
    found += [finding for rule in (*words.RULES, *links.RULES, *messages.RULES, *names.RULES) for finding in rule(tree)]
    found += [*shape.judge(tree), *shape.mirrored_tests_have_subjects(tree)]
    return sorted(set(found))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--accept", action="store_true", help="write today's lengths and missing tests as the ratchet")
    arguments = parser.parse_args()
    tree = read_tree(arguments.root)
    if arguments.accept:
        ratchet = {section: dict(sorted(entries.items())) for section, entries in shape.measure(tree).items()}
        (arguments.root / shape.RATCHET_PATH).write_text(json.dumps(ratchet, indent=2) + "\n")
        tree = read_tree(arguments.root)
    found = all_findings(tree)
    for finding in found:
        print(finding)
    print(f"tidy: {len(tree.texts)} files, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
