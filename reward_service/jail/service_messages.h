// Messages between service and referee, beside those of messages.h.
#ifndef WARPSMITH_REWARD_SERVICE_JAIL_SERVICE_MESSAGES_H_
#define WARPSMITH_REWARD_SERVICE_JAIL_SERVICE_MESSAGES_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reward_service/jail/fields.h"

namespace warpsmith {

// Between service and referee. Each request has an `id` that its answer repeats.
namespace service {

// What a referee can do on its machine.
struct Facts {
  static constexpr Trusted<std::string> lane_cores{"lane_cores"};
  static constexpr Trusted<bool> realtime{"realtime"};
  static constexpr Trusted<bool> profile{"profile"};
  static constexpr Trusted<std::string> torch_version{"torch_version"};
  static constexpr Trusted<std::string> torch_cpu_capability{"torch_cpu_capability"};
  static constexpr Trusted<double> empty_call_us{"empty_call_us"};
  static constexpr Trusted<double> sample_us{"sample_us"};
  static constexpr Trusted<double> gigabytes_per_second_ceiling{"gigabytes_per_second_ceiling"};
  static constexpr Trusted<double> nearest_cache_gigabytes_per_second{"nearest_cache_gigabytes_per_second"};
  static constexpr Trusted<nlohmann::json> gpu{"gpu"};  // null where there is none
};

// cuda::GpuFacts.
struct Gpu {
  static constexpr Trusted<int> index{"index"};
  static constexpr Trusted<std::string> name{"name"};
  static constexpr Trusted<std::string> uuid{"uuid"};
  static constexpr Trusted<std::string> driver_version{"driver_version"};
  static constexpr Trusted<int> capability_major{"capability_major"};
  static constexpr Trusted<int> capability_minor{"capability_minor"};
  static constexpr Trusted<int64_t> memory_bytes{"memory_bytes"};
  static constexpr Trusted<int64_t> l2_cache_bytes{"l2_cache_bytes"};
  static constexpr Trusted<int> num_multiprocessors{"num_multiprocessors"};
  static constexpr Trusted<int> sm_clock_max_mhz{"sm_clock_max_mhz"};
};

// JudgeLimits.
struct Limits {
  static constexpr Trusted<double> cpu_seconds_max{"cpu_seconds_max"};
  static constexpr Trusted<double> call_seconds_max{"call_seconds_max"};
  static constexpr Trusted<double> lane_seconds_max{"lane_seconds_max"};
};

// TimingEffort.
struct Effort {
  static constexpr Trusted<int> num_instances_min{"num_instances_min"};
  static constexpr Trusted<int> num_instances_max{"num_instances_max"};
  static constexpr Trusted<int> num_rounds_max{"num_rounds_max"};
  static constexpr Trusted<double> relative_width_max{"relative_width_max"};
  static constexpr Trusted<std::vector<std::string>> baselines{"baselines"};  // ReferenceForm::key
};

struct Start : ToReferee {
  static constexpr char op[] = "start";
  static constexpr Trusted<std::vector<int>> lane_cores{"lane_cores"};
  static constexpr Trusted<bool> realtime{"realtime"};
  static constexpr TextField python{"python", 4096};
  static constexpr TextField bin_directory{"bin_directory", 4096};
  static constexpr TextField share_directory{"share_directory", 4096};
  static constexpr IntegerField jail_memory_bytes_max{"jail_memory_bytes_max", 1 << 20, INT64_MAX, 0};
  static constexpr IntegerField oracle_memory_bytes_max{"oracle_memory_bytes_max", 1 << 20, INT64_MAX, 0};
  static constexpr IntegerField buffer_bytes_max{"buffer_bytes_max", 1 << 12, INT64_MAX, 0};
  static constexpr IntegerField num_tasks_max{"num_tasks_max", 1, 4096, 16};
  static constexpr IntegerField host_draw_bytes_max{"host_draw_bytes_max", 0, INT64_MAX, 0};
  static constexpr TextField gpu_uuid{"gpu_uuid", 64};
};

struct Started : ToService {
  static constexpr char op[] = "started";
  static constexpr Trusted<nlohmann::json> facts{"facts"};
};

struct Judge : ToReferee {
  static constexpr char op[] = "judge";
  static constexpr IntegerField id{"id", 0, INT64_MAX, 0};
  static constexpr NumberField timeout_seconds{"timeout_seconds", 0, 86400, 60};
  static constexpr TextField key{"key", 128};
  static constexpr TextField kind{"kind", 16};
  static constexpr char kNative[] = "native";
  static constexpr char kPython[] = "python";
  static constexpr Trusted<bool> with_blas{"with_blas"};
  static constexpr Trusted<bool> with_torch{"with_torch"};
  static constexpr Trusted<bool> with_streams{"with_streams"};
  static constexpr Trusted<nlohmann::json> limits{"limits"};
  static constexpr Trusted<nlohmann::json> timing{"timing"};
  static constexpr Trusted<bool> verify_only{"verify_only"};
  static constexpr Trusted<bool> another_follows{"another_follows"};
  static constexpr Trusted<uint64_t> seed{"seed"};      // tests alone send it
  static constexpr int64_t kSourceBytesMax = 16 << 20;  // of a task's or a program's text
};

struct Judged : ToService {
  static constexpr char op[] = "judged";
  static constexpr IntegerField id{"id", 0, INT64_MAX, 0};
  static constexpr int64_t kMeasurementBytesMax = 64 << 10;
};

struct Record : ToReferee {
  static constexpr char op[] = "record";
  static constexpr IntegerField id{"id", 0, INT64_MAX, 0};
  static constexpr NumberField timeout_seconds{"timeout_seconds", 0, 86400, 60};
  static constexpr TextField key{"key", 128};
};

struct Recorded : ToService {
  static constexpr char op[] = "recorded";
  static constexpr IntegerField id{"id", 0, INT64_MAX, 0};
  // Triton kernels in the list are the program's own.
  static constexpr BooleanField own_kernels{"own_kernels"};
  static constexpr int64_t kRecordingBytesMax = 4 << 20;
  static constexpr size_t kExtensionsMax = 16;
};

struct Calibrate : ToReferee {
  static constexpr char op[] = "calibrate";
  static constexpr IntegerField id{"id", 0, INT64_MAX, 0};
  static constexpr NumberField timeout_seconds{"timeout_seconds", 0, 86400, 60};
};

struct Calibrated : ToService {
  static constexpr char op[] = "calibrated";
  static constexpr IntegerField id{"id", 0, INT64_MAX, 0};
  static constexpr Trusted<nlohmann::json> facts{"facts"};
};

struct Prefetch : ToReferee {
  static constexpr char op[] = "prefetch";
  static constexpr TextField key{"key", 128};
};

struct Failed : ToService {
  static constexpr char op[] = "failed";
  static constexpr IntegerField id{"id", 0, INT64_MAX, 0};
  static constexpr IntegerField code{"code", 1, 16, 13};  // of absl::StatusCode
  static constexpr TextField error{"error", 4096};
};

}  // namespace service

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_JAIL_SERVICE_MESSAGES_H_
