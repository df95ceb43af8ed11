#include "core/checkpoint/checkpoint_directory.h"

#include <fstream>

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

namespace fs = std::filesystem;

CheckpointDirectory Open(const TemporaryDirectory& directory) {
  return CheckpointDirectory::Open(directory.path() / "checkpoints").value();
}

// Writes a checkpoint of two files, one of them in a folder.
void Write(CheckpointDirectory& checkpoints, int64_t step) {
  const fs::path path = checkpoints.Begin(step).value();
  fs::create_directory(path / "optimiser");
  REQUIRE(WriteFileAtomically(path / "weights.bin", "weights of step " + std::to_string(step)).ok());
  REQUIRE(WriteFileAtomically(path / "optimiser" / "state.bin", "moments").ok());
  REQUIRE(checkpoints.Commit(step).ok());
}

int64_t NewestStep(const CheckpointDirectory& checkpoints) {
  const auto newest = checkpoints.NewestComplete(Verification::kDigests).value();
  return newest.has_value() ? newest->number : -1;
}

std::vector<int64_t> Steps(const CheckpointDirectory& checkpoints) {
  std::vector<int64_t> steps;
  const std::vector<Checkpoint> listed = checkpoints.List().value();
  for (const Checkpoint& checkpoint : listed) steps.push_back(checkpoint.number);
  return steps;
}

}  // namespace

TEST_CASE("a new directory has no checkpoint, and the newest of several is found") {
  TemporaryDirectory directory;
  CheckpointDirectory checkpoints = Open(directory);
  CHECK(NewestStep(checkpoints) == -1);
  Write(checkpoints, 9);
  Write(checkpoints, 10);
  Write(checkpoints, 1'000'000);
  CHECK(Steps(checkpoints) == std::vector<int64_t>{9, 10, 1'000'000});
  CHECK(NewestStep(checkpoints) == 1'000'000);
  CHECK(fs::exists(checkpoints.root() / "checkpoint_000009" / "optimiser" / "state.bin"));
}

TEST_CASE("what was begun and not committed is not there, and is cleaned away") {
  TemporaryDirectory directory;
  CheckpointDirectory checkpoints = Open(directory);
  Write(checkpoints, 1);
  REQUIRE(checkpoints.Begin(2).ok());
  REQUIRE(WriteFileAtomically(checkpoints.root() / "checkpoint_000002.tmp" / "weights.bin", "half").ok());
  CHECK(NewestStep(checkpoints) == 1);
  CHECK(Steps(checkpoints) == std::vector<int64_t>{1});
  REQUIRE(checkpoints.RemoveIncomplete().ok());
  CHECK_FALSE(fs::exists(checkpoints.root() / "checkpoint_000002.tmp"));
  CHECK(NewestStep(checkpoints) == 1);
}

TEST_CASE("beginning again removes what the earlier attempt wrote") {
  TemporaryDirectory directory;
  CheckpointDirectory checkpoints = Open(directory);
  const fs::path first = checkpoints.Begin(3).value();
  REQUIRE(WriteFileAtomically(first / "stale.bin", "x").ok());
  Write(checkpoints, 3);
  CHECK_FALSE(fs::exists(checkpoints.root() / "checkpoint_000003" / "stale.bin"));
}

TEST_CASE("a step committed again replaces the one before") {
  TemporaryDirectory directory;
  CheckpointDirectory checkpoints = Open(directory);
  Write(checkpoints, 3);
  const fs::path path = checkpoints.Begin(3).value();
  REQUIRE(WriteFileAtomically(path / "weights.bin", "new").ok());
  REQUIRE(checkpoints.Commit(3).ok());
  CHECK(ReadFile(checkpoints.root() / "checkpoint_000003" / "weights.bin").value() == "new");
  CHECK_FALSE(fs::exists(checkpoints.root() / "checkpoint_000003.tmp"));
  CHECK(NewestStep(checkpoints) == 3);
}

TEST_CASE("with any file of the newest cut short at any byte, or missing, the one before is used") {
  TemporaryDirectory directory;
  CheckpointDirectory checkpoints = Open(directory);
  Write(checkpoints, 1);
  Write(checkpoints, 2);
  for (const char* name : {"weights.bin", "optimiser/state.bin", "manifest.json"}) {
    const fs::path path = checkpoints.root() / "checkpoint_000002" / name;
    const std::string whole = ReadFile(path).value();
    for (size_t size = 0; size + 1 < whole.size(); ++size) {  // the manifest's last byte is only a newline
      fs::resize_file(path, size);
      INFO(name << " cut to " << size);
      CHECK(NewestStep(checkpoints) == 1);
      std::ofstream(path, std::ios::binary) << whole;
    }
    fs::remove(path);
    CHECK(NewestStep(checkpoints) == 1);
    std::ofstream(path, std::ios::binary) << whole;
    CHECK(NewestStep(checkpoints) == 2);
  }
}

TEST_CASE("a byte changed in place is seen by digests, a size by both") {
  TemporaryDirectory directory;
  CheckpointDirectory checkpoints = Open(directory);
  Write(checkpoints, 1);
  const fs::path path = checkpoints.root() / "checkpoint_000001";
  std::ofstream(path / "weights.bin", std::ios::binary) << "weights of step X";
  CHECK(VerifyManifest(path, Verification::kSizes).ok());
  const absl::Status changed = VerifyManifest(path, Verification::kDigests);
  CHECK(absl::IsDataLoss(changed));
  CHECK(changed.message().find("weights.bin") != absl::string_view::npos);
  std::ofstream(path / "weights.bin", std::ios::binary) << "longer than it ever was";
  CHECK(absl::IsDataLoss(VerifyManifest(path, Verification::kSizes)));
}

TEST_CASE("where every checkpoint is damaged, all damaged files are named and nothing changes") {
  TemporaryDirectory directory;
  CheckpointDirectory checkpoints = Open(directory);
  Write(checkpoints, 1);
  Write(checkpoints, 2);
  const fs::path older = checkpoints.root() / "checkpoint_000001",
                 newer = checkpoints.root() / "checkpoint_000002";
  fs::remove(older / "manifest.json");
  std::ofstream(newer / "weights.bin", std::ios::binary) << "weights of step X";
  fs::resize_file(newer / "optimiser" / "state.bin", 1);
  const absl::Status status = checkpoints.NewestComplete(Verification::kDigests).status();
  CHECK(absl::IsDataLoss(status));
  for (const fs::path& path :
       {older / "manifest.json", newer / "weights.bin", newer / "optimiser" / "state.bin"}) {
    CHECK(status.message().find(path.string()) != absl::string_view::npos);
  }
  CHECK(Steps(checkpoints) == std::vector<int64_t>{1, 2});
}

TEST_CASE("a checkpoint of a newer format is refused, not passed over as damaged") {
  TemporaryDirectory directory;
  CheckpointDirectory checkpoints = Open(directory);
  Write(checkpoints, 1);
  Write(checkpoints, 2);
  const fs::path manifest = checkpoints.root() / "checkpoint_000002" / "manifest.json";
  REQUIRE(WriteFileAtomically(manifest, R"({"format": 2, "files": []})").ok());
  for (const absl::Status& status :
       {checkpoints.NewestComplete(Verification::kSizes).status(), checkpoints.Retain(1)}) {
    CHECK(absl::IsFailedPrecondition(status));
    CHECK(status.message().find(manifest.string() + " has format 2") != absl::string_view::npos);
  }
  CHECK(Steps(checkpoints) == std::vector<int64_t>{1, 2});
}

TEST_CASE("a manifest that names files elsewhere is refused") {
  TemporaryDirectory directory;
  for (const char* name : {"../x", "/etc/passwd", "", "a/../../x", "./x"}) {
    REQUIRE(WriteManifest(directory.path(), {{name, 0, ""}}).ok());
    INFO(name);
    CHECK(absl::IsInvalidArgument(ReadManifest(directory.path()).status()));
  }
}

TEST_CASE("the newest whole checkpoints are kept, the others go") {
  TemporaryDirectory directory;
  CheckpointDirectory checkpoints = Open(directory);
  for (int64_t step = 1; step <= 5; ++step) Write(checkpoints, step);
  fs::resize_file(checkpoints.root() / "checkpoint_000004" / "weights.bin", 1);
  REQUIRE(checkpoints.Retain(2).ok());
  CHECK(Steps(checkpoints) == std::vector<int64_t>{3, 5});
  REQUIRE(checkpoints.Retain(1).ok());
  CHECK(Steps(checkpoints) == std::vector<int64_t>{5});
  CHECK(NewestStep(checkpoints) == 5);
}

TEST_CASE("a folder that an earlier version named is read, and its number goes on") {
  TemporaryDirectory directory;
  CheckpointDirectory checkpoints = Open(directory);
  Write(checkpoints, 7);
  fs::rename(checkpoints.root() / "checkpoint_000007", checkpoints.root() / "step_000007");
  CHECK(NewestStep(checkpoints) == 7);
  Write(checkpoints, 8);
  CHECK(Steps(checkpoints) == std::vector<int64_t>{7, 8});
  REQUIRE(checkpoints.Retain(1).ok());
  CHECK(Steps(checkpoints) == std::vector<int64_t>{8});
}

TEST_CASE("folders of other names are left alone") {
  TemporaryDirectory directory;
  CheckpointDirectory checkpoints = Open(directory);
  for (const char* name :
       {"checkpoint_1", "checkpoint_", "checkpoint_0000001", "other", "best.tmp", "checkpoint_x.tmp"}) {
    fs::create_directory(checkpoints.root() / name);
  }
  CHECK(Steps(checkpoints).empty());
  REQUIRE(checkpoints.RemoveIncomplete().ok());
  CHECK(fs::exists(checkpoints.root() / "best.tmp"));
  CHECK(fs::exists(checkpoints.root() / "checkpoint_x.tmp"));
}

TEST_CASE("a link among the files of a checkpoint is refused") {
  TemporaryDirectory directory;
  CheckpointDirectory checkpoints = Open(directory);
  const fs::path path = checkpoints.Begin(1).value();
  fs::create_symlink("/etc/passwd", path / "link");
  CHECK(absl::IsInvalidArgument(checkpoints.Commit(1).status()));
  CHECK(NewestStep(checkpoints) == -1);
}

TEST_CASE("a root that cannot be made is an error") {
  TemporaryDirectory directory;
  REQUIRE(WriteFileAtomically(directory.path() / "file", "x").ok());
  CHECK_FALSE(CheckpointDirectory::Open(directory.path() / "file" / "checkpoints").ok());
}

}  // namespace warpsmith
