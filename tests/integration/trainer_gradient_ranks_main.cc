// One rank of a gradient spread over processes: writes all gradients, float64, to the file it is given (rank
// 0).
#include <fstream>
#include <iostream>

#include "core/distributed/process_group_environment.h"
#include "tests/unit/trainer/policy_batch.h"

namespace warpsmith {
namespace {

int Run(const char* path) {
  const auto environment = ReadProcessGroupEnvironment(LookUpEnvironment);
  WS_CHECK(environment.ok()) << environment.status();
  const auto control = ControlPlane::Create(*environment);
  WS_CHECK(control.ok()) << control.status();
  auto communicator = CreateTcpCommunicator(*environment, control->get(), {.deadline = absl::Seconds(60)});
  WS_CHECK(communicator.ok()) << communicator.status();
  const auto policy = MakePolicy(at::kDouble);
  const auto sequences = MakeBatch();
  std::vector<int64_t> lengths;
  for (const TrainingSequence& sequence : sequences) lengths.push_back(sequence.num_tokens());
  const auto shares = AssignToRanks(lengths, environment->world_size);
  const auto sums = AccumulatePolicyGradient(*policy, sequences, shares[environment->rank], MakeOptions(),
                                             nullptr, nullptr);
  WS_CHECK(sums.ok()) << sums.status();
  const absl::Status reduced = AllReduceGradients(*policy, **communicator);
  WS_CHECK(reduced.ok()) << reduced;
  if (environment->rank != 0) return 0;
  const std::vector<double> gradients = GradientsOf(policy->weights());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(gradients.data()),
             static_cast<std::streamsize>(gradients.size() * sizeof(double)));
  return file.good() ? 0 : 1;
}

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: trainer_gradient_ranks FILE\n";
    return 2;
  }
  return warpsmith::Run(argv[1]);
}
