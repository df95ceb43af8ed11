"""Each rule finds what it is for, and leaves a clean tree alone."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.tidy import layers, links, names, rooms, shape, words
from tests.tidy.__main__ import all_findings
from tests.tidy.tree import Tree, read_tree

ARCHITECTURE = """
| level | folder | uses | Torch |
|---|---|---|---|
| 0 | core/base | | no |
| 0 | proto | | no |
| 1 | core/rpc | core/base | no |
| 1 | core/kernels | core/base | yes |
| 2 | core/model | core/base core/kernels | yes |
| 3 | trainer | proto core/base core/rpc core/kernels core/model | yes |
| 3 | reward_service | proto core/base | no |
| 3 | reward_service | core/rpc | no |
"""


def header(path: str, body: str = "") -> str:
    guard = "WARPSMITH_" + path.replace("/", "_").replace(".", "_").upper() + "_"
    return f"// Purpose.\n#ifndef {guard}\n#define {guard}\n{body}\n#endif\n"


def clean_tree() -> dict[str, str]:
    return {
        "ARCHITECTURE.md": ARCHITECTURE,
        "core/base/file.h": header("core/base/file.h"),
        "core/base/file.cc": '#include "core/base/file.h"\n\nint Size() { return 1; }\n',
        "core/base/CMakeLists.txt": "warpsmith_library(core_base SOURCES file.cc)\n",
        "core/kernels/add.h": header("core/kernels/add.h"),
        "core/kernels/CMakeLists.txt": "warpsmith_library(core_kernels SOURCES add.cc PUBLIC core_base TORCH)\n",
        "trainer/update.h": header("trainer/update.h", '#include "core/kernels/add.h"\n#include <ATen/core/Tensor.h>'),
        "tests/unit/core/base/file_test.cc": '#include "core/base/file.h"\n',
        "docs/use.md": "# How to use `it`, well\n[first](#how-to-use-it-well), [core](../core/base), [web](https://a.org/b),\n"
        "`a[0](b.md)`\n```\n# No heading\nkernel[grid](x)\n```\n",
    }


def findings_with(changes: dict[str, str]) -> list[str]:
    return [str(finding) for finding in all_findings(Tree({**clean_tree(), **changes}))]


def test_a_clean_tree_has_no_finding() -> None:
    assert findings_with({}) == []


def test_a_main_may_start_what_reads_its_configuration() -> None:
    tree = {
        "trainer/main.cc": '#include "trainer/run/start.h"\n',
        "trainer/configuration.h": header("trainer/configuration.h"),
        "trainer/run/start.h": header("trainer/run/start.h", '#include "trainer/configuration.h"'),
        "trainer/run/CMakeLists.txt": "warpsmith_library(trainer_run SOURCES start.cc PUBLIC trainer)\n",
    }
    assert findings_with(tree) == []


def test_rows_of_a_folder_add_up() -> None:
    service = layers.read_table(ARCHITECTURE)["reward_service"]
    assert service == layers.Layer(3, frozenset({"proto", "core/base", "core/rpc"}), False)


LONG_FUNCTION = "int Long() {\n" + "  Step();\n" * 70 + "}\n"

TWO_ROOMS = "namespace warpsmith%s {\nclass Reply final : public Answer {};\n}\n"
BREACHES = {
    "a type's name twice in a namespace": (
        {path: header(path, TWO_ROOMS % "") for path in ("trainer/a.h", "core/base/b.h")},
        "warpsmith::Reply is a type of core/base/b.h too",
    ),
    "an upward include": (
        {"core/base/a.h": header("core/base/a.h", '#include "core/kernels/add.h"')},
        "core/base may not use core/kernels",
    ),
    "another process's folder": (
        {"trainer/a.h": header("trainer/a.h", '#include "reward_service/b.h"')},
        "trainer may not use reward_service",
    ),
    "an include beside the file": (
        {"core/base/a.h": header("core/base/a.h", '#include "file.h"')},
        "from the root",
    ),
    "a product file that includes tests": (
        {"trainer/a.h": header("trainer/a.h", '#include "tests/support/catch.h"')},
        "only tests include tests",
    ),
    "Torch where it is not allowed": (
        {"core/rpc/a.h": header("core/rpc/a.h", "#include <ATen/core/Tensor.h>")},
        "core/rpc is free of LibTorch",
    ),
    "Torch in a kernel's header": (
        {"core/kernels/a.h": header("core/kernels/a.h", "#include <c10/core/Device.h>")},
        "names no LibTorch",
    ),
    "protobuf in the model": (
        {"core/model/a.h": header("core/model/a.h", "#include <google/protobuf/message.h>")},
        "core/model is free of protobuf",
    ),
    "all of Torch": (
        {"trainer/a.h": header("trainer/a.h", "#include <torch/torch.h>")},
        "ATen/ops/<operator>.h",
    ),
    "Torch and protobuf in one source": (
        {"trainer/main.cc": '#include "trainer/update.h"\n#include "warpsmith/v1/task.pb.h"\n'},
        "both LibTorch (ATen/core/Tensor.h) and protobuf",
    ),
    "an upward link": (
        {"core/base/CMakeLists.txt": "warpsmith_library(core_base SOURCES file.cc PUBLIC core_model)\n"},
        "core/base may not link core_model",
    ),
    "a link to Torch": (
        {"core/base/CMakeLists.txt": "warpsmith_library(core_base SOURCES file.cc TORCH)\n"},
        "core/base is free of LibTorch",
    ),
    "Python that imports another process": (
        {"reward_service/oracle/main.py": '"""Purpose."""\nfrom trainer.steps import Step\n'},
        "reward_service may not import trainer.steps",
    ),
    "folders that include each other": (
        {
            "trainer/a/x.h": header("trainer/a/x.h", '#include "trainer/b/y.h"'),
            "trainer/b/y.h": header("trainer/b/y.h", '#include "trainer/a/x.h"'),
        },
        "trainer/a: and trainer/b include each other",
    ),
    "a folder without a row": ({"cli/a.h": header("cli/a.h")}, "without a row"),
    "a table that is not layered": (
        {"ARCHITECTURE.md": ARCHITECTURE.replace("| core/base | | no", "| core/base | proto | no")},
        "core/base uses proto, which is not on a lower level",
    ),
    "a source without its test": (
        {"core/base/b.cc": "int B() { return 2; }\n"},
        "no test in the mirrored folder",
    ),
    "a launch without its test": (
        {"core/base/b_cuda.cu": "int B() { return 2; }\n", "tests/unit/core/base/b_cuda_test.cc": ""},
        "no test in the mirrored folder",
    ),
    "a test of nothing": (
        {"tests/unit/trainer/none/a_test.cc": ""},
        "tests trainer/none, which does not exist",
    ),
    "a long file": ({"tests/long_test.cc": "\n" * 401}, "has 401 lines"),
    "a long function": ({"tests/long_test.cc": LONG_FUNCTION}, "long_test.cc:Long: has 72 lines"),
    "a long Python function": (
        {"tests/long_test.py": "def long():\n" + "    step()\n" * 70},
        "long_test.py:long: has 71 lines",
    ),
    "a wide line": ({"tests/wide_test.cc": "// " + "x" * 120 + "\n"}, "has 1 lines of more than 120 columns"),
    "a vague name": (
        {"trainer/string_utils.h": header("trainer/string_utils.h")},
        "'string_utils' says nothing",
    ),
    "a camel-case file": ({"tests/MyTest.cc": ""}, "is not snake_case"),
    "a header without guard": ({"trainer/a.h": "// Purpose.\n#pragma once\n"}, "lacks its guard"),
    "a header without purpose": (
        {"trainer/a.h": header("trainer/a.h")[len("// Purpose.\n") :]},
        "without a comment",
    ),
    "an exception of ours": ({"trainer/main.cc": "void F() { throw 1; }\n"}, "instead of throwing"),
    "a sleep": (
        {"trainer/main.cc": "void F() { absl::SleepFor(absl::Seconds(1)); }\n"},
        "instead of sleeping",
    ),
    "a function macro": ({"trainer/main.cc": "#define TWICE(x) ((x) * 2)\n"}, "write TWICE as a function"),
    "a glob": ({"tests/CMakeLists.txt": "file(GLOB sources *.cc)\n"}, "by a glob"),
    "a link to no page": (
        {"README.md": '[use](docs/other.md "title")\n'},
        "links to docs/other.md, which is not there",
    ),
    "a link to no heading": (
        {"README.md": "[use](docs/use.md#no-heading)\n"},
        "links to #no-heading of docs/use.md, which has no such heading",
    ),
    "a foreign word": ({"README.md": "See /work/" + "notes.\n"}, "has the word"),
    "a word of learning in core": (
        {"core/base/a.h": header("core/base/a.h", "// Clips the advantage.")},
        "core has no word 'advantage'",
    ),
}


@pytest.mark.parametrize("breach", BREACHES)
def test_a_breach_is_found(breach: str) -> None:
    changes, message = BREACHES[breach]
    assert any(message in finding for finding in findings_with(changes)), findings_with(changes)


def test_every_rule_is_seen_to_fail() -> None:
    names = [rule.__name__ for rule in (*layers.RULES, *links.RULES, *words.RULES)]
    fired = set()
    for changes, _ in BREACHES.values():
        tree = Tree({**clean_tree(), **changes})
        table = layers.read_table(tree.texts["ARCHITECTURE.md"])
        fired |= {rule.__name__ for rule in layers.RULES if any(rule(tree, table))}
        fired |= {rule.__name__ for rule in (*links.RULES, *words.RULES) if any(rule(tree))}
    # A tab is the one breach without an example above.
    assert set(names) - fired == {"tabs_do_not_indent"}
    assert any(words.tabs_do_not_indent(Tree({"tests/a.py": "\tpass\n"})))


def test_words_in_comments_and_strings_are_no_code() -> None:
    source = '// throw\nconst char* kText = "throw sleep(1)";\nconst char* kRaw = R"(#define A(x) throw)";\n'
    assert findings_with({"trainer/main.cc": source}) == []


def test_the_ratchet_excuses_what_it_names() -> None:
    excuse = {"file_lines": {"tests/long_test.cc": 401}}
    assert findings_with({"tests/long_test.cc": "\n" * 401, shape.RATCHET_PATH: json.dumps(excuse)}) == []


def test_the_ratchet_only_tightens() -> None:
    excuse = {"file_lines": {"tests/long_test.cc": 500}}
    found = findings_with({"tests/long_test.cc": "\n" * 401, shape.RATCHET_PATH: json.dumps(excuse)})
    assert found == [f"{shape.RATCHET_PATH}: file_lines: tests/long_test.cc is better now; lower or remove it"]


def _class(num_private: int) -> str:
    method = "  void Step{}(std::map<int, int> a = {{}}) ABSL_LOCKS_EXCLUDED(mutex_);\n"
    return (
        "class Judge : public Base<int> {\n public:\n  Judge();\n  bool Run() { return Step0(), true; }\n\n private:\n"
        "  struct Inner {\n    void Deep();\n    int size() const { return 1; }\n  };\n"
        + "".join(method.format(i) for i in range(num_private))
        + "  std::function<void(int)> done_;\n  int size_ ABSL_GUARDED_BY(mutex_) = Size(1);\n  int* two_{nullptr};\n};"
    )


@pytest.mark.parametrize(("num_private", "is_too_many"), [(20, False), (21, True)])
def test_private_methods_of_a_class_are_counted(num_private: int, is_too_many: bool) -> None:
    path = "reward_service/server/judge.h"
    found = [finding for finding in findings_with({path: header(path, _class(num_private))}) if "private" in finding]
    assert bool(found) == is_too_many
    assert all(f"{path}:Judge: has 21 private methods" in finding for finding in found)


def test_bodies_operators_and_constructors_count_and_structs_are_public() -> None:
    methods = ("A(int a) : a_(a) {}", "bool operator==(const A&) const = default;", "int f() { return g(); }")
    code = "class A {\n" + "\n".join(methods) + "\n};\n"
    assert list(rooms.private_methods(code)) == [("A", 3)]
    assert list(rooms.private_methods("struct B { void f(); void g(); };")) == [("B", 0)]
    assert list(rooms.private_methods("enum class C { kOne, kTwo };")) == []


def test_types_of_one_name_in_two_namespaces_are_two() -> None:
    assert (
        findings_with(
            {
                "trainer/a.h": header("trainer/a.h", TWO_ROOMS % "::trainer"),
                "core/base/b.h": header("core/base/b.h", TWO_ROOMS % "::base"),
            }
        )
        == []
    )


def test_only_types_that_other_files_see_are_counted() -> None:
    code = """
namespace warpsmith {
class Forward;
enum class Kind : int { kOne };
struct A final { struct Inner { int x; }; };
struct B::State { int x; };
namespace { struct Hidden { int x; }; }
void Run() { struct Local { int x; }; }
namespace inner { template <class T> class C : public A { }; }
}
"""
    found = [name for name, _ in names.namespace_types(code)]
    assert found == ["warpsmith::Kind", "warpsmith::A", "warpsmith::inner::C"]


@pytest.mark.parametrize(("num_pairs", "is_too_many"), [(20, False), (21, True)])
def test_pairs_of_a_folder_are_counted(num_pairs: int, is_too_many: bool) -> None:
    paths = [f"reward_service/server/a{i}{suffix}" for i in range(num_pairs) for suffix in (".h", ".cc")]
    found = [finding for finding in findings_with({path: header(path) for path in paths}) if "pairs" in finding]
    assert bool(found) == is_too_many


def test_nothing_excuses_a_huge_file() -> None:
    excuse = {"file_lines": {"tests/long_test.cc": 601}}
    found = findings_with({"tests/long_test.cc": "\n" * 601, shape.RATCHET_PATH: json.dumps(excuse)})
    assert any("nothing excuses more than 600" in finding for finding in found)


def test_the_longest_of_several_functions_is_named() -> None:
    source = (
        "namespace a {\nint Short() { return 1; }\n\n" + LONG_FUNCTION.replace("Long()", "B::Long(int x) const") + "}\n"
    )
    assert any("B::Long" in finding for finding in findings_with({"tests/a_test.cc": source}))


def test_inputs_of_fuzzers_are_no_text_of_ours(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for name in ("tests/fuzz/corpus/x_fuzz/seed", "tests/fuzz/x_fuzz.cc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text\n")
    assert list(read_tree(tmp_path).texts) == ["tests/fuzz/x_fuzz.cc"]
