// Reads what the `safetensors` package of Python writes, and lets it read what we write.
#include <cstdlib>
#include <fstream>

#include "core/base/build_info.h"
#include "core/base/file.h"
#include "core/checkpoint/tensor_directory.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/core/checkpoint/tensor_bytes.h"

namespace warpsmith {
namespace {

// Runs a program text in the build's Python, in `directory`; its exit status.
int RunPython(const std::filesystem::path& directory, const std::string& program) {
  const auto path = directory / "program.py";
  std::ofstream(path) << program;
  return std::system(
      ("cd '" + directory.string() + "' && '" + GetBuildInfo().python + "' program.py").c_str());
}

bool PythonHasSafetensors(const std::filesystem::path& directory) {
  return RunPython(directory, "import numpy, safetensors.numpy\n") == 0;
}

}  // namespace

TEST_CASE("the Python package and we read each other's files") {
  TemporaryDirectory directory;
  if (!PythonHasSafetensors(directory.path())) {
    WARN("skipped: " << GetBuildInfo().python << " has no safetensors; ./dev build installs it");
    return;
  }
  REQUIRE(RunPython(directory.path(), R"(
import numpy, safetensors.numpy
tensors = {"f": numpy.arange(6, dtype=numpy.float32).reshape(2, 3),
           "h": numpy.array([1.5], dtype=numpy.float16),
           "i": numpy.array(7, dtype=numpy.int64),
           "empty": numpy.zeros((0, 4), dtype=numpy.uint8)}
safetensors.numpy.save_file(tensors, "model.safetensors", metadata={"format": "pt"})
)") == 0);
  const TensorDirectory read = TensorDirectory::Open(directory.path()).value();
  REQUIRE(read.tensors().size() == 4);
  CHECK(read.Find("f")->info.shape == std::vector<int64_t>{2, 3});
  CHECK(reinterpret_cast<const float*>(read.Find("f")->bytes.data())[5] == 5.0f);
  CHECK(read.Find("h")->info.type == TensorType::kF16);
  CHECK(reinterpret_cast<const int64_t*>(read.Find("i")->bytes.data())[0] == 7);

  std::filesystem::remove(directory.path() / "model.safetensors");
  const std::vector<TensorInfo> tensors = {{"a", TensorType::kU8, {3, 5}},
                                           {"b.\xc3\xa9", TensorType::kI32, {2}},
                                           {"none", TensorType::kF32, {0}},
                                           {"scalar", TensorType::kF64, {}}};
  REQUIRE(WriteTensorDirectory(directory.path(), tensors, 16, MakeBytesInParts).ok());
  CHECK(RunPython(directory.path(), R"(
import json, pathlib, safetensors.numpy
index = json.loads(pathlib.Path("model.safetensors.index.json").read_text())
tensors = {}
for shard in sorted(set(index["weight_map"].values())):
    part = safetensors.numpy.load_file(shard)
    assert all(index["weight_map"][name] == shard for name in part), shard
    tensors |= part
assert sorted(tensors) == ["a", "b.\u00e9", "none", "scalar"], sorted(tensors)
assert tensors["a"].shape == (3, 5) and tensors["none"].shape == (0,) and tensors["scalar"].shape == ()
assert index["metadata"]["total_size"] == sum(tensor.nbytes for tensor in tensors.values())
expected = bytes((ord("a") * 7 + i) % 256 for i in range(15))
assert tensors["a"].tobytes() == expected
)") == 0);
}

}  // namespace warpsmith
