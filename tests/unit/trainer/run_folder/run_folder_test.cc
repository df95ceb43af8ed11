#include "trainer/run_folder/run_folder.h"

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

namespace fs = std::filesystem;

const RunFolderContents kNothing;
const RunFolderContents kStoppedEarly = {.results = {"metrics.jsonl"}, .has_checkpoints_folder = true};
const RunFolderContents kMovedAway = {.results = {"metrics.jsonl"}};
const RunFolderContents kRunning = {.results = {"checkpoints", "metrics.jsonl", "transitions.jsonl"},
                                    .has_checkpoint = true,
                                    .has_checkpoints_folder = true,
                                    .is_past_first_checkpoint = true};
const RunFolderContents kWithoutCheckpoints = {.results = {"metrics.jsonl", "summary.json"},
                                               .is_past_first_checkpoint = true};

// The start as a word, or the error's code and the ways out that its message names.
std::string Outcome(const RunFolderContents& contents, const RunRequest& request) {
  const absl::StatusOr<RunStart> start = DecideRunStart("runs/x", contents, request);
  if (start.ok()) {
    const char* const names[] = {"fresh", "overwrite", "checkpoint"};
    return names[static_cast<int>(*start)];
  }
  CHECK_THAT(std::string(start.status().message()), Catch::Contains("runs/x"));
  std::string outcome = absl::IsNotFound(start.status())             ? "not found"
                        : absl::IsFailedPrecondition(start.status()) ? "refused"
                                                                     : "another error";
  for (const char* way_out :
       {"--resume goes on", "launch with --resume", "--overwrite removes", "run.name"}) {
    if (start.status().message().find(way_out) != absl::string_view::npos)
      absl::StrAppend(&outcome, ", ", way_out);
  }
  return outcome;
}

void WriteFile(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  REQUIRE(WriteFileAtomically(path, text).ok());
}

std::vector<std::string> ResultsIn(const fs::path& directory) {
  return ListRunFolder(directory).value().results;
}

}  // namespace

TEST_CASE("A start without a flag is for a folder that holds no run") {
  CHECK(Outcome(kNothing, {}) == "fresh");
  for (const RunFolderContents& held : {kStoppedEarly, kRunning, kWithoutCheckpoints}) {
    CHECK(Outcome(held, {}) == "refused, --resume goes on, --overwrite removes, run.name");
  }
}

TEST_CASE("A run is continued from its checkpoint, or from its beginning where it never had one") {
  CHECK(Outcome(kRunning, {.resume = true}) == "checkpoint");
  CHECK(Outcome(kStoppedEarly, {.resume = true}) == "fresh");
  CHECK(Outcome(kNothing, {.resume = true}) == "not found, run.name");
  CHECK(Outcome(kMovedAway, {.resume = true}) == "refused, --overwrite removes, run.name");
  CHECK(Outcome(kWithoutCheckpoints, {.resume = true}) == "refused, --overwrite removes, run.name");
}

TEST_CASE("Overwriting begins anew, whatever is there") {
  for (const RunFolderContents& contents : {kNothing, kStoppedEarly, kRunning, kWithoutCheckpoints}) {
    CHECK(Outcome(contents, {.overwrite = true}) == "overwrite");
  }
}

TEST_CASE("A launcher that restarts gives --resume to the first attempt too") {
  CHECK(Outcome(kNothing, {.resume = true, .restarts_max = 3}) == "fresh");
  CHECK(Outcome(kNothing, {.resume = true, .restart_count = 1, .restarts_max = 3}) == "fresh");
  CHECK(Outcome(kRunning, {.resume = true, .restart_count = 2, .restarts_max = 3}) == "checkpoint");
}

TEST_CASE("A restart never removes what an attempt before it wrote") {
  for (const RunFolderContents& held : {kStoppedEarly, kRunning, kWithoutCheckpoints}) {
    CHECK(Outcome(held, {.restart_count = 1}) == "refused, launch with --resume");
    CHECK(Outcome(held, {.overwrite = true, .restart_count = 1}) == "refused, launch with --resume");
  }
  CHECK(Outcome(kNothing, {.restart_count = 1}) == "fresh");
}

TEST_CASE("A folder holds a run when something that a run writes is not empty") {
  TemporaryDirectory directory;
  CHECK(ResultsIn(directory.path() / "absent").empty());
  CHECK_FALSE(fs::exists(directory.path() / "absent"));
  WriteFile(directory.path() / "config.yaml", "run: {}");
  WriteFile(directory.path() / "lock", "process 1");
  WriteFile(directory.path() / "logs" / "trainer-1.log", "x");
  WriteFile(directory.path() / "tensorboard" / "events", "x");
  WriteFile(directory.path() / "metrics.jsonl", "");
  fs::create_directory(directory.path() / "checkpoints");
  CHECK(ResultsIn(directory.path()).empty());

  WriteFile(directory.path() / "metrics.jsonl", "{}\n");
  fs::create_directory(directory.path() / "checkpoints" / "step_000001.tmp");
  RunFolderContents contents = ListRunFolder(directory.path()).value();
  CHECK(contents.results == std::vector<std::string>{"checkpoints", "metrics.jsonl"});
  CHECK_FALSE(contents.has_checkpoint);
  CHECK_FALSE(contents.is_past_first_checkpoint);

  fs::create_directory(directory.path() / "checkpoints" / "step_000001");
  WriteFile(directory.path() / "export" / "config.json", "{}");
  contents = ListRunFolder(directory.path()).value();
  CHECK(contents.results == std::vector<std::string>{"checkpoints", "metrics.jsonl", "export"});
  CHECK(contents.has_checkpoint);
  CHECK(contents.is_past_first_checkpoint);
}

TEST_CASE("Removing a run removes all that it left and nothing else") {
  TemporaryDirectory directory;
  for (const char* name : {"checkpoints/step_000001/weights", "metrics.jsonl", "transitions.jsonl",
                           "evaluation/x", "export/x", "export.tmp/x", "export.17.tmp/x", "summary.json",
                           "tensorboard/x", "report.html", "checkpoints.removed/x"}) {
    WriteFile(directory.path() / name, "old");
  }
  WriteFile(directory.path() / "compiled" / "cache", "kept");
  REQUIRE(RemoveRun(directory.path()).ok());
  CHECK(std::distance(fs::directory_iterator(directory.path()), {}) == 1);
  CHECK(fs::exists(directory.path() / "compiled" / "cache"));
}

TEST_CASE("What a removal that was cut short left is a run without checkpoints") {
  TemporaryDirectory directory;
  WriteFile(directory.path() / "checkpoints.removed" / "checkpoint_000001" / "weights", "old");
  const RunFolderContents contents = ListRunFolder(directory.path()).value();
  CHECK(contents.results == std::vector<std::string>{"checkpoints.removed"});
  CHECK_FALSE(contents.has_checkpoint);
  CHECK(Outcome(contents, {.resume = true}) == "refused, --overwrite removes, run.name");
}

TEST_CASE("A disk without room for one checkpoint is refused with both sizes") {
  TemporaryDirectory directory;
  CHECK(CheckRoom(directory.path(), 1, false).ok());
  const absl::Status status = CheckRoom(directory.path(), int64_t{1} << 60, false);
  CHECK(absl::IsResourceExhausted(status));
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("1152921504606846976") && Catch::Contains("another run.directory"));
}

TEST_CASE("What overwriting will free counts as room") {
  TemporaryDirectory directory;
  WriteFile(directory.path() / "checkpoints" / "step_000001" / "weights", "");
  fs::resize_file(directory.path() / "checkpoints" / "step_000001" / "weights", uintmax_t{1} << 42);
  const int64_t more_than_free =
      static_cast<int64_t>(fs::space(directory.path()).available) + (int64_t{1} << 41);
  CHECK_FALSE(CheckRoom(directory.path(), more_than_free, false).ok());
  CHECK(CheckRoom(directory.path(), more_than_free, true).ok());
}

TEST_CASE("What a save that was cut short left counts as room, for the next save removes it") {
  TemporaryDirectory directory;
  const fs::path unfinished = directory.path() / "checkpoints" / "checkpoint_000002.tmp" / "weights";
  WriteFile(unfinished, "");
  fs::resize_file(unfinished, uintmax_t{1} << 42);
  const int64_t more_than_free =
      static_cast<int64_t>(fs::space(directory.path()).available) + (int64_t{1} << 41);
  CHECK(CheckRoom(directory.path(), more_than_free, false).ok());
  CHECK_FALSE(CheckRoom(directory.path(), int64_t{1} << 60, false).ok());
}

}  // namespace warpsmith
