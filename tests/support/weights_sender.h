// A weights_sender as a child of a test.
#ifndef WARPSMITH_TESTS_SUPPORT_WEIGHTS_SENDER_H_
#define WARPSMITH_TESTS_SUPPORT_WEIGHTS_SENDER_H_

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/time/time.h"
#include "core/base/check.h"
#include "core/model/offered_memory.h"

namespace warpsmith {

class WeightsSender {
 public:
  // `program` is the name of a weights_sender that lies beside the program that runs.
  WeightsSender(const std::string& program, const std::string& model, int device,
                const std::filesystem::path& socket)
      : socket_(socket) {
    const std::string path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / program;
    int input[2], output[2];
    WS_CHECK(pipe(input) == 0 && pipe(output) == 0);
    child_ = fork();
    if (child_ == 0) {
      dup2(input[0], STDIN_FILENO);
      dup2(output[1], STDOUT_FILENO);
      for (const int end : {input[0], input[1], output[0], output[1]}) close(end);
      execl(path.c_str(), path.c_str(), model.c_str(), std::to_string(device).c_str(), socket_.c_str(),
            nullptr);
      _exit(127);
    }
    close(input[0]);
    close(output[1]);
    to_ = fdopen(input[1], "w");
    from_ = fdopen(output[0], "r");
    WS_CHECK(child_ > 0 && to_ != nullptr && from_ != nullptr);
  }
  WeightsSender(const WeightsSender&) = delete;
  WeightsSender& operator=(const WeightsSender&) = delete;
  ~WeightsSender() { End(SIGTERM); }

  OfferedMemory Offer(uint64_t version) {
    Say("offer " + std::to_string(version));
    return ReadOffer(version);
  }
  // `how`: "broadcast", or "die". The only receiver's offer.
  OfferedBroadcast Broadcast(const std::string& how, uint64_t version, absl::Duration patience) {
    Say(how + " " + std::to_string(version) + " " + std::to_string(absl::ToInt64Seconds(patience)));
    OfferedBroadcast offer{.memory = ReadOffer(version), .place = {.num_ranks = 2, .rank = 1}};
    offer.memory.socket_path.clear();
    offer.place.id = absl::HexStringToBytes(Line());
    return offer;
  }
  // To a broadcast, by its receiver: "received", or "failed". Returns what the sender says of it.
  std::string Answer(const std::string& answer) {
    Say(answer);
    return Line();
  }
  void Spoil() {
    Say("spoil");
    WS_CHECK(Line() == "spoiled");
  }
  void Withdraw() {
    Say("withdraw");
    WS_CHECK(Line() == "withdrawn");
  }
  void End(int signal) {
    if (child_ <= 0) return;
    kill(child_, signal);
    waitpid(child_, nullptr, 0);
    std::fclose(to_);
    std::fclose(from_);
    child_ = 0;
  }

 private:
  void Say(const std::string& line) {
    std::fputs((line + "\n").c_str(), to_);
    std::fflush(to_);
  }
  OfferedMemory ReadOffer(uint64_t version) {
    OfferedMemory offer{.socket_path = socket_, .version = version, .layout_sha256 = Line(), .buffers = {}};
    const int num_buffers = std::stoi(Line());
    for (int i = 0; i < num_buffers; ++i) {
      char name[64], checksum[64];
      long long offset = 0, length = 0;
      WS_CHECK(std::sscanf(Line().c_str(), "%63s %lld %lld %63s", name, &offset, &length, checksum) == 4);
      offer.buffers.push_back(
          {.name = name, .offset_bytes = offset, .length_bytes = length, .checksum = checksum});
    }
    return offer;
  }
  std::string Line() {
    char text[1024];
    WS_CHECK(std::fgets(text, sizeof(text), from_) != nullptr) << "the sender of weights has ended";
    std::string line(text);
    line.pop_back();
    return line;
  }

  const std::filesystem::path socket_;
  pid_t child_ = 0;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_WEIGHTS_SENDER_H_
