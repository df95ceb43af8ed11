// Jails of candidates that are puppets.
#ifndef WARPSMITH_TESTS_UNIT_REWARD_SERVICE_REFEREE_CANDIDATE_JAILS_BENCH_H_
#define WARPSMITH_TESTS_UNIT_REWARD_SERVICE_REFEREE_CANDIDATE_JAILS_BENCH_H_

#include <memory>

#include "reward_service/referee/candidate_jails.h"
#include "tests/support/catch.h"
#include "tests/support/puppet_task.h"

namespace warpsmith {

inline absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

// Candidates' jails of one request; `room` and `deadline` are as a test likes.
struct JailsBench {
  explicit JailsBench(CandidateKind kind, const nlohmann::json& script = nlohmann::json::object(),
                      Room room = Room::kOpen, absl::Time deadline = Soon())
      : puppets(script),
        request(PuppetRequest(kind)),
        options{.zygote = puppets.zygote.get(),
                .lane = &PuppetLane(),
                .memory_bytes_max = int64_t{1} << 30,
                .room = room,
                .deadline = deadline} {
    request.extension_fds = {AnyProgram().get(), AnyProgram().get()};
    Renew();
  }

  // After a change of `options`.
  void Renew() {
    jails = std::make_unique<CandidateJails>(options, request, AnyProgram().get(), &measurement);
  }

  absl::StatusOr<StartedJail> Start(const Jail* baseline = nullptr, int num_threads = 1) {
    return jails->Start(*puppets.task, baseline, num_threads);
  }

  PuppetTask puppets;
  JudgeRequest request;
  CandidateJailOptions options;
  v1::Measurement measurement;
  std::unique_ptr<CandidateJails> jails;
};

// Holds what a puppet tells of its fork and of how it was begun. It is stopped.
inline nlohmann::json Told(const StartedJail& started) {
  ChildProcess& process = started.jail->jail().process();
  const auto timed = process.AskOnTheClock({{"op", "tell"}}, absl::Seconds(60));
  REQUIRE(timed.ok());
  return timed->answer.fields;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_UNIT_REWARD_SERVICE_REFEREE_CANDIDATE_JAILS_BENCH_H_
