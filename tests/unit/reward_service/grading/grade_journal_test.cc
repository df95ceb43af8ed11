#include "reward_service/grading/grade_journal.h"

#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

GradeRecord Record(int number) {
  GradeRecord record{"tenant\nid " + std::to_string(number), "content", {}};
  record.grade.set_request_id("id " + std::to_string(number));
  record.grade.mutable_reward()->set_value(number);
  return record;
}

struct Opened {
  absl::StatusOr<std::unique_ptr<GradeJournal>> journal = absl::UnknownError("not opened");
  std::vector<GradeRecord> records;

  explicit Opened(const std::filesystem::path& folder, int64_t bytes_max = 1 << 20) {
    journal =
        GradeJournal::Open(folder, bytes_max, [this](GradeRecord r) { records.push_back(std::move(r)); });
  }
};

TEST_CASE("what was appended is there again, in order") {
  const TemporaryDirectory folder;
  {
    const Opened first(folder.path() / "new");
    REQUIRE(first.journal.ok());
    CHECK(first.records.empty());
    for (int i = 0; i < 3; ++i) (*first.journal)->Append(Record(i));
  }
  const Opened second(folder.path() / "new");
  REQUIRE(second.journal.ok());
  REQUIRE(second.records.size() == 3);
  CHECK(second.records[2].identity == "tenant\nid 2");
  CHECK(second.records[2].content_sha256 == "content");
  CHECK(second.records[2].grade.reward().value() == 2);
}

TEST_CASE("an unfinished record is cut off, and those after it are kept") {
  const TemporaryDirectory folder;
  {
    const Opened first(folder.path());
    for (int i = 0; i < 2; ++i) (*first.journal)->Append(Record(i));
  }
  const std::filesystem::path file = folder.path() / "grades";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 3);
  {
    const Opened second(folder.path());
    REQUIRE(second.journal.ok());
    CHECK(second.records.size() == 1);
    (*second.journal)->Append(Record(7));
  }
  const Opened third(folder.path());
  REQUIRE(third.records.size() == 2);
  CHECK(third.records[1].grade.reward().value() == 7);
}

// Within its life no file grows beyond `num_bytes`.
class FileLimit {
 public:
  explicit FileLimit(rlim_t num_bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{num_bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_CASE("what a full disk did not take is written when it has room, in order") {
  const TemporaryDirectory folder;
  {
    const Opened first(folder.path());
    (*first.journal)->Append(Record(0));
    {
      const FileLimit full(std::filesystem::file_size(folder.path() / "grades") + 20);
      for (int i = 1; i < 4; ++i) (*first.journal)->Append(Record(i));
    }
    (*first.journal)->Append(Record(4));
  }
  const Opened second(folder.path());
  REQUIRE(second.records.size() == 5);
  for (int i = 0; i < 5; ++i) CHECK(second.records[static_cast<size_t>(i)].grade.reward().value() == i);
}

TEST_CASE("bytes that are no record end the reading, whatever they say of their length") {
  for (const std::string& junk :
       {std::string("\xff\xff\xff\xff junk"), std::string(64, '\0'), std::string("\x09")}) {
    const TemporaryDirectory folder;
    std::ofstream(folder.path() / "grades", std::ios::binary) << junk;
    const Opened opened(folder.path());
    REQUIRE(opened.journal.ok());
    CHECK(opened.records.empty());
    CHECK(std::filesystem::file_size(folder.path() / "grades") == 0);
  }
}

TEST_CASE("the disk holds no more than the budget, and the latest records") {
  const TemporaryDirectory folder;
  constexpr int64_t kBytesMax = 8 << 10;
  {
    const Opened first(folder.path(), kBytesMax);
    for (int i = 0; i < 1000; ++i) (*first.journal)->Append(Record(i));
  }
  int64_t num_bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) num_bytes += entry.file_size();
  CHECK(num_bytes <= kBytesMax);
  const Opened second(folder.path(), kBytesMax);
  REQUIRE(second.records.size() > 10);
  CHECK(second.records.back().grade.reward().value() == 999);
}

TEST_CASE("a file beyond a budget that was lowered is given up, and the journal goes on") {
  const TemporaryDirectory folder;
  {
    const Opened first(folder.path(), int64_t{1} << 30);
    for (int i = 0; i < 100; ++i) {
      GradeRecord record = Record(i);
      record.grade.set_verdict_reason(std::string(400'000, 'x'));
      (*first.journal)->Append(record);
    }
  }
  {
    const Opened lowered(folder.path(), 8 << 10);
    REQUIRE(lowered.journal.ok());
    CHECK(lowered.records.empty());
    (*lowered.journal)->Append(Record(7));
  }
  CHECK(Opened(folder.path(), 8 << 10).records.size() == 1);
}

TEST_CASE("a folder belongs to one service") {
  const TemporaryDirectory folder;
  const Opened first(folder.path());
  const Opened second(folder.path());
  CHECK(first.journal.ok());
  CHECK(absl::IsResourceExhausted(second.journal.status()));
}

}  // namespace
}  // namespace warpsmith
