// C interface of the jail for the Python zygote, loaded by ctypes.
#include <cstdint>
#include <cstdio>
#include <string>

#include "core/base/touch_constants.h"
#include "reward_service/jail/enter_jail.h"
#include "reward_service/jail/messages.h"
#include "reward_service/jail/withheld_pages.h"
#include "reward_service/sandbox/confinement.h"

namespace {

int Report(const absl::Status& status, char* error, size_t error_bytes) {
  if (status.ok()) return 0;
  std::snprintf(error, error_bytes, "%s", std::string(status.message()).c_str());
  return -1;
}

}  // namespace

// 0, or -1 with a message.
extern "C" int warpsmith_separate_next_child(char* error, size_t error_bytes) {
  return Report(warpsmith::SeparateNextChild(), error, error_bytes);
}

// As above, but instead of 0 the descriptor of the folder of libraries. `open_gpu`: null, or what opens the GPU that is
// to be used, 0 when it did.
extern "C" int warpsmith_enter_jail(uint32_t uid, int64_t memory_bytes_max, int64_t address_bytes_max,
                                    int64_t tmp_bytes_max, int cpu_seconds_max, int num_threads_max,
                                    int sealed, int (*open_gpu)(), char* error, size_t error_bytes) {
  warpsmith::JailRights rights{.uid = uid,
                               .memory_bytes_max = memory_bytes_max,
                               .address_bytes_max = address_bytes_max,
                               .tmp_bytes_max = tmp_bytes_max,
                               .cpu_seconds_max = cpu_seconds_max,
                               .num_threads_max = num_threads_max,
                               .sealed = sealed != 0};
  if (open_gpu != nullptr) {
    rights.open_gpu = [open_gpu] {
      return open_gpu() == 0 ? absl::OkStatus() : absl::InternalError("the GPU cannot be opened");
    };
  }
  absl::StatusOr<warpsmith::UniqueFd> libraries = warpsmith::EnterJail(rights);
  if (!libraries.ok()) return Report(libraries.status(), error, error_bytes);
  return libraries->Release();
}

extern "C" void warpsmith_report_crashes(int socket) { warpsmith::ReportCrashes(socket); }

extern "C" void warpsmith_name_input(const void* start, int64_t num_bytes) {
  warpsmith::NameBuffer(warpsmith::jail::Crash::kInput, start, num_bytes);
}

// See withheld_pages.h.
extern "C" int warpsmith_prepare_learning(char* error, size_t error_bytes) {
  return Report(warpsmith::PrepareLearning(), error, error_bytes);
}

extern "C" int warpsmith_learn_pages(char* error, size_t error_bytes) {
  return Report(warpsmith::LearnPages(), error, error_bytes);
}

// The permitted code, valid until the next call.
extern "C" const char* warpsmith_finish_learning() {
  static std::string text;
  text = warpsmith::FinishLearning();
  return text.c_str();
}

extern "C" int warpsmith_withhold_pages(char* error, size_t error_bytes) {
  return Report(warpsmith::WithholdPages(), error, error_bytes);
}

extern "C" int64_t warpsmith_touch_constants() { return warpsmith::TouchConstants(warpsmith::kTorchLibrary); }
