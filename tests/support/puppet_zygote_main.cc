// puppet_zygote -I -B SCRIPT SOCKET SHARE: stands where a referee expects Python and its zygote. Its children do
// and say what SCRIPT has for them (see puppet_zygote.h); they are not confined.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "reward_service/jail/fork_jail.h"
#include "reward_service/jail/launch_messages.h"
#include "reward_service/jail/messages.h"
#include "reward_service/jail/packet.h"
#include "reward_service/jail/withheld_pages.h"

namespace warpsmith {
namespace {

constexpr int kEndCode = 7;

struct Memory {
  char* data = nullptr;
  size_t num_bytes = 0;
};

size_t BytesOf(const UniqueFd& file) {
  struct stat info {};
  fstat(file.get(), &info);
  return static_cast<size_t>(info.st_size);
}

// Ends the puppet where that fails.
Memory Map(const UniqueFd& fd) {
  const size_t num_bytes = BytesOf(fd);
  void* const data = mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) _exit(1);
  return {static_cast<char*>(data), num_bytes};
}

void Fill(const Memory& memory, float value) {
  auto* const first = reinterpret_cast<float*>(memory.data);
  std::fill(first, first + memory.num_bytes / sizeof(float), value);
}

size_t NumElements(const nlohmann::json& spec) {
  size_t number = 1;
  for (const nlohmann::json& extent : spec.at(oracle::Tensor::shape.name)) number *= extent.get<size_t>();
  return number;
}

// What the script has for a process, told apart by how often it was asked.
class Answers {
 public:
  explicit Answers(const nlohmann::json& script)
      : answers_(script.value("answers", nlohmann::json::object())) {}

  // `usual`, or what the script has instead; nothing where it is silent.
  std::optional<nlohmann::json> Next(const std::string& op, const std::string& detail, nlohmann::json usual) {
    for (const std::string& key : {op + " " + detail, op}) {
      const auto found = answers_.find(key);
      if (found == answers_.end()) continue;
      const size_t index = counts_[key]++;
      const nlohmann::json answer = !found->is_array()      ? *found
                                    : index < found->size() ? (*found)[index]
                                                            : nlohmann::json();
      if (answer == "end") _exit(kEndCode);
      if (answer == "silent") return std::nullopt;
      if (answer.is_number()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(answer.get<int>()));
        return usual;
      }
      if (!answer.is_null()) return answer;
    }
    return usual;
  }

 private:
  nlohmann::json answers_;
  std::map<std::string, size_t> counts_;
};

// With the answers of the child of this number.
nlohmann::json ScriptOfChild(nlohmann::json script, int number) {
  const nlohmann::json children = script.value("children", nlohmann::json::object());
  const auto own = children.find(std::to_string(number));
  if (own != children.end()) script["answers"] = *own;
  return script;
}

class Puppet {
 public:
  Puppet(nlohmann::json script, const Packet& fork, int number)
      : script_(std::move(script)),
        answers_(ScriptOfChild(script_, number)),
        rights_(fork.fields),
        detail_(Read(fork.fields, zygote::Fork::role)),
        number_(number),
        socket_(fork.descriptors[0].get()) {}

  [[noreturn]] void Live() {
    Say(child::Hello::op, Make<child::Hello>());
    for (;;) {
      const absl::StatusOr<Packet> packet = ReceivePacket(socket_);
      if (!packet.ok()) _exit(0);
      nlohmann::json usual = Do(*packet);  // which tells the detail
      Say(Read(packet->fields, kOp), std::move(usual));
    }
  }

 private:
  void Say(const std::string& op, nlohmann::json usual) {
    const std::optional<nlohmann::json> answer = answers_.Next(op, detail_, std::move(usual));
    if (answer) (void)SendPacket(socket_, *answer);
  }

  nlohmann::json Do(const Packet& packet) {
    if (Is<oracle::Load>(packet.fields)) return Load(packet.fields);
    if (Is<oracle::Window>(packet.fields)) return Open(packet);
    if (Is<oracle::Draw>(packet.fields)) return MakeDraw(packet.fields);
    if (Is<jail::Begin>(packet.fields)) return Begin(packet);
    if (Is<jail::Run>(packet.fields)) return Run(packet.fields);
    if (Is<jail::Profile>(packet.fields)) return Make<jail::Profiled>({{jail::Profiled::num_launches, 1}});
    if (Is<jail::Refresh>(packet.fields)) return Make<jail::Done>();
    if (Is<jail::Record>(packet.fields)) return Record(packet);
    return {{"op", "told"}, {"number", number_}, {"rights", rights_}, {"begin", begin_}};
  }

  nlohmann::json Load(const nlohmann::json& fields) {
    is_on_other_inputs_ = fields.contains(oracle::Load::other_inputs.name);
    detail_ = is_on_other_inputs_ ? "other" : "own";
    const std::clock_t spun = std::clock() + script_.value("spins", 0) * (CLOCKS_PER_SEC / 1000);
    while (std::clock() < spun) {
    }
    using oracle::Loaded, oracle::Tensor;
    const nlohmann::json one = {{{Tensor::code, 2}, {Tensor::bits, 32}, {Tensor::shape, {4}}}};
    loaded_ = Make<Loaded>(
        {{Loaded::inputs, one}, {Loaded::parameters, nlohmann::json::array()}, {Loaded::outputs, one}});
    loaded_.merge_patch(script_.value("loaded", nlohmann::json::object()));
    return loaded_;
  }

  nlohmann::json Open(const Packet& packet) {
    inputs_ = Map(packet.descriptors[0]);
    expected_ = Map(packet.descriptors[1]);
    window_ = packet.fields;
    return Make<oracle::Open>();
  }

  // Each draw has other inputs; what is expected is one number, by style.
  nlohmann::json MakeDraw(const nlohmann::json& fields) {
    detail_ = Read(fields, oracle::Draw::style);
    const nlohmann::json values = script_.value("expected", nlohmann::json::object());
    const auto slot = static_cast<size_t>(Read(fields, oracle::Draw::slot));
    const auto in_slot = [&](const Memory& memory, int64_t num_bytes) {
      const auto size = static_cast<size_t>(num_bytes);
      return Memory{memory.data + slot * size, size};
    };
    Fill(in_slot(inputs_, Read(window_, oracle::Window::input_bytes)), static_cast<float>(++num_draws_));
    Fill(in_slot(expected_, Read(window_, oracle::Window::output_bytes)),
         values.value(is_on_other_inputs_ ? "other" : detail_, 0.0F));
    nlohmann::json tolerances = nlohmann::json::array();
    while (tolerances.size() < loaded_.at(oracle::Loaded::outputs.name).size())
      tolerances.push_back({{oracle::Tolerance::absolute, 0.1}});
    return Make<oracle::Drawn>({{oracle::Drawn::tolerances, tolerances}});
  }

  nlohmann::json Begin(const Packet& packet) {
    begin_ = packet.fields;
    begin_["num_descriptors"] = packet.descriptors.size();
    for (const UniqueFd& file : packet.descriptors) begin_["descriptor_bytes"].push_back(BytesOf(file));
    is_native_ = !begin_.contains(jail::Begin::entry.name);
    detail_ = is_native_ ? "native" : Read(begin_, jail::Begin::entry);
    if (begin_.value(jail::Begin::withhold.name, false)) detail_ += " sealed";
    const std::string form = begin_.value(jail::Begin::form.name, jail::Begin::kEager);
    if (form != jail::Begin::kEager) detail_ += " " + form;
    for (size_t i = 2; is_native_ && i < packet.descriptors.size(); ++i)
      outputs_.push_back(Map(packet.descriptors[i]));
    if (detail_ != jail::Begin::kBaseline && script_.value("has_thread", false)) {
      std::thread([] { pause(); }).detach();
    }
    return Make<jail::Ready>({{jail::Ready::parameters_loaded, true}});
  }

  // Outputs are one number: in the buffers of the slot, or in memory of its own.
  nlohmann::json Run(const nlohmann::json& fields) {
    const float value = script_.value("output", 0.0F);
    nlohmann::json places = nlohmann::json::array();
    former_results_ = std::exchange(results_, {});
    for (const nlohmann::json& spec : Read(begin_, jail::Begin::outputs)) {
      const size_t number = NumElements(spec);
      if (is_native_) {
        char* const slot = outputs_[static_cast<size_t>(Read(fields, jail::Run::slot))].data;
        Fill({slot + Read(spec, oracle::Tensor::offset), number * sizeof(float)}, value);
        continue;
      }
      results_.emplace_back(number, value);
      using jail::Place;
      places.push_back({{Place::code, 2},
                        {Place::bits, 32},
                        {Place::dtype, "torch.float32"},
                        {Place::pointer, reinterpret_cast<uintptr_t>(results_.back().data())},
                        {Place::shape, spec.at(oracle::Tensor::shape.name)},
                        {Place::strides, {1}}});
    }
    return Make<jail::Done>({{jail::Done::result, 0}, {jail::Done::outputs, places}});
  }

  // What is asked for, where that has a GPU and where not.
  nlohmann::json Record(const Packet& packet) {
    const bool gpu = Read(rights_, zygote::Fork::gpu);
    const bool calls = Read(packet.fields, jail::Record::calls);
    detail_ = std::string(gpu ? "on gpu" : "on host") + (calls ? ", called" : "");
    if (Read(packet.fields, jail::Record::kernels) && Read(rights_, zygote::Fork::sealed) &&
        Read(rights_, zygote::Fork::records))
      detail_ += ", for kernels";
    const std::string key = gpu && script_.contains("records on gpu") ? "records on gpu" : "records";
    const std::string text = script_.value(key, nlohmann::json::array()).dump();
    if (pwrite(packet.descriptors[1].get(), text.data(), text.size(), 0) < 0) _exit(1);
    const nlohmann::json known = packet.fields.value(jail::Record::gpu.name, nlohmann::json::object());
    const std::string told = known.value(jail::KnownGpu::name.name, "");
    const bool complete =
        script_.value("complete", false) || (!told.empty() && script_.value("complete of", "") == told);
    return Make<jail::Recorded>({{jail::Recorded::bytes, text.size()}, {jail::Recorded::complete, complete}});
  }

  const nlohmann::json script_;
  Answers answers_;
  const nlohmann::json rights_;
  std::string detail_;
  const int number_;
  const int socket_;
  // An oracle's:
  nlohmann::json loaded_;
  bool is_on_other_inputs_ = false;
  Memory inputs_;
  Memory expected_;
  nlohmann::json window_;
  int num_draws_ = 0;
  // A jail's:
  nlohmann::json begin_;
  bool is_native_ = false;
  std::vector<Memory> outputs_;
  std::vector<std::vector<float>> results_;
  std::vector<std::vector<float>> former_results_;  // whose places the referee still reads
};

int ServeForks(int socket, const nlohmann::json& script) {
  using zygote::Warm;
  const auto code = nlohmann::json::parse(LoadedCodeText());
  auto warm = Make<Warm>({{Warm::code, code},
                          {Warm::code_with_copies, code},
                          {Warm::torch_version, "puppet"},
                          {Warm::torch_cpu_capability, "AVX2"}});
  const nlohmann::json other = script.value("warm", nlohmann::json::object());
  for (const auto& [name, value] : other.items()) warm[name] = value;
  std::fputs(script.value("complaint", "").c_str(), stderr);
  Answers answers(script);
  const auto say = [&](const std::string& op, nlohmann::json usual) {
    const std::optional<nlohmann::json> answer = answers.Next(op, "", std::move(usual));
    if (answer) (void)SendPacket(socket, *answer);
  };
  say(Warm::op, warm);
  for (int number = 0;; ++number) {
    const absl::StatusOr<Packet> fork = ReceivePacket(socket);
    if (!fork.ok()) return 0;
    const absl::StatusOr<ForkSide> side = ForkJail();
    if (!side.ok()) return 1;
    if (*side == ForkSide::kJail) {
      close(socket);
      Puppet(script, *fork, number).Live();
    }
    say(zygote::Fork::op, Make<zygote::Forked>());
  }
}

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) {
  // A referee asks its Python for the folders that it needs.
  if (argc == 4 && std::string(argv[2]) == "-c") {
    const std::string folder = std::filesystem::absolute(argv[0]).parent_path();
    for (int i = 0; i < 3; ++i) std::printf("%s\n", folder.c_str());
    return 0;
  }
  if (argc != 7) return 2;
  std::ifstream script(argv[3]);
  return warpsmith::ServeForks(std::atoi(argv[4]), nlohmann::json::parse(script));
}
