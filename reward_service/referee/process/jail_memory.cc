// What a jail's memory has besides outputs: inputs that are withdrawn, guards, rooms that a run left out.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "reward_service/referee/process/guards.h"
#include "reward_service/referee/process/jail.h"
#include "reward_service/referee/tensors/comparison.h"

namespace warpsmith {
namespace {

// Of each output in a room that a run left out: from a place drawn by lot on.
constexpr int64_t kIdleBytes = 4096;
// An idle GPU scatters less. No empty call withdraws anything, so nothing is subtracted from what counts.
constexpr double kBegunUsMin = 50;

bool AllBytesAre(const char* bytes, int64_t n, unsigned char value) {
  if (n <= 0) return true;
  const auto* first = reinterpret_cast<const unsigned char*>(bytes);
  return *first == value && std::memcmp(bytes, bytes + 1, static_cast<size_t>(n - 1)) == 0;
}

}  // namespace

void Jail::RestoreInputs(const Draw& draw, size_t call) {
  buffers_.inputs->Write(draw.inputs, 0, InputStart(call), InputEnd());
}

std::optional<Fault> Jail::WithdrawInputs() {
  const auto& outputs = layout_.outputs;
  if (std::any_of(outputs.begin(), outputs.end(), [](const TensorSpec& spec) { return spec.borrowed; }))
    return std::nullopt;
  for (size_t call = 0; call < num_calls_; ++call)
    buffers_.inputs->Fill(kPoisonByte, InputStart(call), InputEnd());
  // A GPU can wait for these values: work that begins now, behind the answer, is the call's.
  const absl::StatusOr<double> begun_us = buffers_.store->AwaitDone(limits_.call_seconds_max);
  if (!begun_us.ok()) return FaultOfStore(begun_us.status());
  if (*begun_us > kBegunUsMin) after_seconds_ += *begun_us * 1e-6;
  return std::nullopt;
}

std::optional<Fault> Jail::CheckIdleRooms() {
  if (buffers_.outputs.empty()) return std::nullopt;
  for (size_t idle = num_calls_; idle < rooms_.size(); ++idle) {
    for (const TensorSpec& spec : layout_.outputs) {
      const int64_t num_bytes = std::min(kIdleBytes, spec.num_bytes);
      const auto choices = static_cast<uint64_t>(spec.num_bytes - num_bytes + 1);
      const int64_t start =
          OutputRoom(rooms_[idle]) + spec.offset + static_cast<int64_t>(random_() % choices);
      const char* const bytes = buffers_.outputs[slot_]->Read(start, num_bytes);
      if (AllBytesAre(bytes, num_bytes, PoisonByteOf(spec, poison_lot_))) continue;
      return Fault{v1::VERDICT_INCORRECT, "outputs were written of a call that was not made"};
    }
  }
  return std::nullopt;
}

std::optional<Fault> Jail::CheckBuffers(const Draw& draw, size_t call) const {
  if (!buffers_.outputs.empty()) {
    bool intact = true;
    ForEachGuard(layout_, [&](int64_t start, int64_t end) {
      const char* const guard = buffers_.outputs[slot_]->Read(OutputStart(call) + start, end - start);
      intact = intact && AllBytesAre(guard, end - start, kGuardByte);
    });
    if (intact) return std::nullopt;  // inputs are mapped read-only in a native jail
    Fault fault{v1::VERDICT_INCORRECT, "memory outside the outputs was written"};
    fault.out_of_bounds = true;
    return fault;
  }
  for (size_t i = 0; i < layout_.inputs.size(); ++i) {
    const TensorSpec& spec = layout_.inputs[i];
    if (spec.written) continue;
    if (buffers_.inputs->IsSame(draw.inputs, spec.offset, InputStart(call) + spec.offset, spec.num_bytes))
      continue;
    Fault fault{v1::VERDICT_INCORRECT, absl::StrCat("input ", i, " was changed")};
    fault.input_mutated = true;
    return fault;
  }
  return std::nullopt;
}

}  // namespace warpsmith
