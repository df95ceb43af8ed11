// C interface of the jail for the Python zygote, loaded by ctypes.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/strings/str_split.h"
#include "core/base/touch_constants.h"
#include "reward_service/jail/enter_jail.h"
#include "reward_service/jail/fat_binaries.h"
#include "reward_service/jail/launch_trace.h"
#include "reward_service/jail/messages.h"
#include "reward_service/jail/withheld_pages.h"
#include "reward_service/sandbox/confinement.h"

namespace {

int Report(const absl::Status& status, char* error, size_t error_bytes) {
  if (status.ok()) return 0;
  std::snprintf(error, error_bytes, "%s", std::string(status.message()).c_str());
  return -1;
}

// By the interpreter that has loaded this library. A function of ctypes would do, but that takes memory which is code
// and can be written.
absl::Status RunPython(const char* statements) {
  const auto ensure = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Ensure"));
  const auto release = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "PyGILState_Release"));
  const auto run =
      reinterpret_cast<int (*)(const char*, void*)>(dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags"));
  if (ensure == nullptr || release == nullptr || run == nullptr)
    return absl::InternalError("no Python interpreter is here");
  const int state = ensure();
  const int result = run(statements, nullptr);  // which prints errors
  release(state);
  return result == 0 ? absl::OkStatus() : absl::InternalError("the GPU cannot be opened");
}

}  // namespace

// 0, or -1 with a message.
extern "C" int warpsmith_separate_next_child(char* error, size_t error_bytes) {
  return Report(warpsmith::SeparateNextChild(), error, error_bytes);
}

// As above, but instead of 0 the descriptor of the folder of libraries. `open_gpu`: Python that opens the GPU that is
// to be used; empty where there is none. `importable_paths`, a line each: see JailRights.
extern "C" int warpsmith_enter_jail(uint32_t uid, int64_t memory_bytes_max, int64_t address_bytes_max,
                                    int64_t tmp_bytes_max, int cpu_seconds_max, int num_threads_max,
                                    int sealed, int compiles, const char* open_gpu,
                                    const char* importable_paths, char* error, size_t error_bytes) {
  warpsmith::JailRights rights{.uid = uid,
                               .memory_bytes_max = memory_bytes_max,
                               .address_bytes_max = address_bytes_max,
                               .tmp_bytes_max = tmp_bytes_max,
                               .cpu_seconds_max = cpu_seconds_max,
                               .num_threads_max = num_threads_max,
                               .sealed = sealed != 0,
                               .compiles = compiles != 0,
                               .importable_paths = absl::StrSplit(importable_paths, '\n', absl::SkipEmpty())};
  if (open_gpu[0] != '\0') {
    rights.open_gpu = [open_gpu] { return RunPython(open_gpu); };
  }
  absl::StatusOr<warpsmith::UniqueFd> libraries = warpsmith::EnterJail(rights);
  if (!libraries.ok()) return Report(libraries.status(), error, error_bytes);
  return libraries->Release();
}

extern "C" int warpsmith_mount_own_processes(char* error, size_t error_bytes) {
  return Report(warpsmith::MountOwnProcesses(), error, error_bytes);
}

extern "C" void warpsmith_report_crashes(int socket) { warpsmith::ReportCrashes(socket); }

extern "C" void warpsmith_name_input(const void* start, int64_t num_bytes) {
  warpsmith::NameBuffer(warpsmith::jail::Crash::kInput, start, num_bytes);
}

// See withheld_pages.h; `kept`, a line each.
extern "C" int warpsmith_prepare_learning(const char* kept, char* error, size_t error_bytes) {
  return Report(warpsmith::PrepareLearning(absl::StrSplit(kept, '\n', absl::SkipEmpty())), error,
                error_bytes);
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

extern "C" void warpsmith_learn_copies() { warpsmith::LearnCopies(); }

extern "C" int warpsmith_withhold_pages(int with_copies, char* error, size_t error_bytes) {
  const auto copies = with_copies != 0 ? warpsmith::Copies::kByLibraries : warpsmith::Copies::kWithheld;
  return Report(warpsmith::WithholdPages(copies), error, error_bytes);
}

// See fat_binaries.h; `unused` and `kept`, a line each.
extern "C" int warpsmith_find_fat_binaries(const char* unused, const char* kept, char* error,
                                           size_t error_bytes) {
  return Report(warpsmith::FindFatBinaries(absl::StrSplit(unused, '\n', absl::SkipEmpty()),
                                           absl::StrSplit(kept, '\n', absl::SkipEmpty())),
                error, error_bytes);
}

extern "C" int warpsmith_withhold_fat_binaries(char* error, size_t error_bytes) {
  return Report(warpsmith::WithholdFatBinaries(), error, error_bytes);
}

// See launch_trace.h.
extern "C" int warpsmith_load_cupti(const char* path, char* error, size_t error_bytes) {
  return Report(warpsmith::LoadCupti(path), error, error_bytes);
}

extern "C" int warpsmith_begin_trace(char* error, size_t error_bytes) {
  return Report(warpsmith::BeginTrace(), error, error_bytes);
}

// Writes the message jail::Profiled, as JSON, and returns its bytes.
extern "C" int warpsmith_end_trace(char* text, size_t text_bytes, char* error, size_t error_bytes) {
  const absl::StatusOr<warpsmith::Launches> launches = warpsmith::EndTrace();
  if (!launches.ok()) return Report(launches.status(), error, error_bytes);
  const std::string told =
      launches->ToMessage().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (told.size() > text_bytes)
    return Report(absl::InternalError("what was launched does not fit"), error, error_bytes);
  told.copy(text, told.size());
  return static_cast<int>(told.size());
}

extern "C" int64_t warpsmith_touch_constants() { return warpsmith::TouchConstants(warpsmith::kTorchLibrary); }
