#include "reward_service/referee/referee_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/memory_file.h"
#include "reward_service/compiler/sandboxed_compilation.h"
#include "reward_service/jail/messages.h"
#include "reward_service/jail/packet.h"
#include "reward_service/measure/referee.h"
#include "reward_service/measure/request_json.h"
#include "tests/support/catch.h"
#include "tests/support/puppet_zygote.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

// A referee in a process of its own, as the service has it, whose Python is one of puppets.
class Bench {
 public:
  explicit Bench(const nlohmann::json& script = nlohmann::json::object(),
                 const std::filesystem::path& python = PuppetPython()) {
    WritePuppetScript(share_.path(), script);
    const std::filesystem::path empty = "jail/libwarpsmith_empty.so";
    std::filesystem::create_symlink(ShareDirectory() / empty, share_.path() / empty);
    auto pair = MakePacketPair();
    WS_CHECK(pair.ok());
    pid_ = fork();
    WS_CHECK(pid_ >= 0);
    if (pid_ == 0) {
      pair->first.Reset();
      _exit(ServeReferee(pair->second.get()).ok() ? 0 : 3);
    }
    socket_ = std::move(pair->first);
    RefereeOptions options{.lane_cores = PuppetLane().core_list(),
                           .python = python,
                           .share_directory = share_.path(),
                           .realtime = false,
                           .oracle_memory_bytes_max = int64_t{4} << 30,
                           .buffer_bytes_max = 1 << 20,
                           .num_tasks_max = 2};
    options.bin_directory = ShareDirectory().parent_path().parent_path() / "bin";
    Send(Make<service::Start>({{service::Start::referee_options, options}}));
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  void Send(const nlohmann::json& fields, const std::vector<int>& descriptors = {}) {
    (void)SendPacket(socket_.get(), fields, descriptors);
  }
  // With the task and a program, as both judging and recording want them.
  void SendProgram(nlohmann::json fields) {
    fields["key"] = "key";
    Send(fields, {task_.get(), program_.get()});
  }
  Packet Receive() {
    auto packet = ReceivePacket(socket_.get(), Soon());
    INFO(packet.status().ToString());
    REQUIRE(packet.ok());
    return *std::move(packet);
  }
  void AwaitStart() { REQUIRE(Receive().fields["op"] == "started"); }
  void HangUp() { socket_.Reset(); }
  int AwaitExit() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  const TemporaryDirectory share_;
  const UniqueFd task_ = *SealedMemoryFile("class Model: pass");
  const UniqueFd program_ = *SealedMemoryFile("class ModelNew: pass");
  pid_t pid_ = -1;
  UniqueFd socket_;
};

nlohmann::json JudgeQuestion(int id) {
  using service::Judge;
  return Make<Judge>({{Judge::id, id},
                      {Judge::kind, Judge::kPython},
                      {Judge::limits, JudgeLimits{}},
                      {Judge::timing, TimingEffort{}},
                      {Judge::verify_only, true},
                      {Judge::another_follows, false},
                      {Judge::with_blas, false},
                      {Judge::with_torch, false},
                      {Judge::with_streams, false}});
}

// A script in which recording a program is answered so.
nlohmann::json Recording(const nlohmann::json& answer) { return {{"answers", {{"record", answer}}}}; }

nlohmann::json Recorded(const nlohmann::json& script) {
  Bench bench(script);
  bench.AwaitStart();
  bench.SendProgram({{"op", "record"}, {"id", 1}});
  return bench.Receive().fields;
}

TEST_CASE("a referee begins by what it can do here, and repeats the id of what it is asked") {
  Bench bench;
  const nlohmann::json started = bench.Receive().fields;
  CHECK(started["op"] == "started");
  CHECK(started["facts"]["lane_cores"] == PuppetLane().cores());
  CHECK(started["facts"]["torch_version"] == "puppet");
  bench.Send({{"op", "calibrate"}, {"id", 7}});
  const nlohmann::json calibrated = bench.Receive().fields;
  CHECK(calibrated["op"] == "calibrated");
  CHECK(calibrated["id"] == 7);
  CHECK(calibrated["facts"]["gigabytes_per_second_ceiling"] > 0);
  bench.SendProgram(JudgeQuestion(8));
  const Packet judged = bench.Receive();
  CHECK(judged.fields["op"] == "judged");
  CHECK(judged.fields["id"] == 8);
  REQUIRE(judged.descriptors.size() == 1);
  v1::Measurement measurement;
  CHECK(measurement.ParseFromString(*ReadMemoryFile(judged.descriptors[0].get(), 1 << 20)));
  CHECK(measurement.grade().verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("a referee that cannot start says why, and ends") {
  Bench bench(nlohmann::json::object(), "/bin/false");
  const nlohmann::json failed = bench.Receive().fields;
  CHECK(failed["op"] == "failed");
  CHECK(failed["code"] == static_cast<int>(absl::StatusCode::kFailedPrecondition));
  CHECK_THAT(failed["error"].get<std::string>(), Catch::Contains("/bin/false has no package torch"));
  CHECK(bench.AwaitExit() == 3);
}

TEST_CASE("the service hangs up: the referee ends, also in the midst of its work") {
  Bench bench(Recording("silent"));
  bench.AwaitStart();
  bench.SendProgram({{"op", "record"}, {"id", 1}});
  bench.HangUp();
  CHECK(bench.AwaitExit() == 0);
}

TEST_CASE("what a program wants built comes as a list that nobody can change") {
  Bench bench(nlohmann::json::parse(R"({"records": [{"name": "twice"}]})"));
  bench.AwaitStart();
  bench.SendProgram({{"op", "record"}, {"id", 2}});
  const Packet answer = bench.Receive();
  CHECK(answer.fields["op"] == "recorded");
  CHECK(answer.fields["id"] == 2);
  REQUIRE(answer.descriptors.size() == 1);
  CHECK(*ReadMemoryFile(answer.descriptors[0].get(), 1 << 20) == "[{\"name\":\"twice\"}]");
  CHECK((fcntl(answer.descriptors[0].get(), F_GET_SEALS) & F_SEAL_WRITE) != 0);
}

TEST_CASE("a program that fails before it asks for anything is at fault, in harmless words") {
  const nlohmann::json raised = Recorded(Recording({{"op", "failed"}, {"error", "NameError\x1b[0m"}}));
  CHECK(raised["op"] == "failed");
  CHECK(raised["code"] == static_cast<int>(absl::StatusCode::kInvalidArgument));
  CHECK(raised["error"].get<std::string>().find("NameError") == 0);
  CHECK(raised["error"].get<std::string>().find('\x1b') == std::string::npos);
  const nlohmann::json ended = Recorded(Recording("end"));
  CHECK(ended["code"] == static_cast<int>(absl::StatusCode::kInvalidArgument));
  CHECK(ended["error"] == "the program exited with code 7");
}

TEST_CASE("a recording has its limit, and then the referee serves others") {
  Bench bench(Recording({"silent", "silent"}));
  bench.AwaitStart();
  for (int id = 1; id < 3; ++id) {
    bench.SendProgram({{"op", "record"}, {"id", id}, {"timeout_seconds", 0.1}});
    const nlohmann::json failed = bench.Receive().fields;
    CHECK(failed["id"] == id);
    CHECK(failed["code"] == static_cast<int>(absl::StatusCode::kDeadlineExceeded));
  }
  bench.Send({{"op", "calibrate"}, {"id", 3}});
  CHECK(bench.Receive().fields["id"] == 3);
}

TEST_CASE("a list is as long as its program says only where that can be") {
  Bench bench(Recording({{"op", "recorded"}, {"bytes", 1 << 30}}));
  bench.AwaitStart();
  bench.SendProgram({{"op", "record"}, {"id", 1}});
  const Packet answer = bench.Receive();
  REQUIRE(answer.descriptors.size() == 1);
  CHECK(ReadMemoryFile(answer.descriptors[0].get(), 1 << 20)->empty());
}

TEST_CASE("a task at fault is not told as a fault of the program that is recorded") {
  const nlohmann::json failed =
      Recorded({{"answers", {{"load", {{"op", "failed"}, {"error", "no Model"}}}}}});
  CHECK(failed["code"] == static_cast<int>(absl::StatusCode::kFailedPrecondition));
  CHECK(failed["error"] == "no Model");
}

TEST_CASE("a task that is only foretold has no answer") {
  Bench bench;
  bench.AwaitStart();
  bench.SendProgram({{"op", "prefetch"}});
  bench.Send({{"op", "calibrate"}, {"id", 1}});
  CHECK(bench.Receive().fields["op"] == "calibrated");
}

TEST_CASE(
    "a request without its program is the service's own failure, which ends the referee in a judgement") {
  for (const char* op : {"record", "judge"}) {
    Bench bench;
    bench.AwaitStart();
    bench.Send({{"op", op}, {"id", 1}});
    const nlohmann::json failed = bench.Receive().fields;
    CHECK(failed["op"] == "failed");
    CHECK(failed["code"] == static_cast<int>(absl::StatusCode::kInternal));
    if (op == std::string("judge")) {
      CHECK(bench.AwaitExit() == 1);
    } else {
      bench.Send({{"op", "calibrate"}, {"id", 2}});
      CHECK(bench.Receive().fields["id"] == 2);
    }
  }
}

TEST_CASE("whoever asks for a judgement waits for no recording") {
  Bench bench(Recording("silent"));
  bench.AwaitStart();
  bench.SendProgram({{"op", "record"}, {"id", 1}, {"timeout_seconds", 60}});
  bench.Send({{"op", "calibrate"}, {"id", 2}});
  CHECK(bench.Receive().fields["id"] == 2);
}

TEST_CASE("a service that sends more than may wait loses its referee") {
  Bench bench(nlohmann::json{{"answers", {{"load", "silent"}}}});
  bench.AwaitStart();
  bench.SendProgram(JudgeQuestion(1));
  for (int id = 2; id < 12; ++id) bench.Send({{"op", "calibrate"}, {"id", id}});
  CHECK(bench.AwaitExit() == 3);
}

}  // namespace
}  // namespace warpsmith
