// Messages between service and referee, beside those of messages.h.
#ifndef WARPSMITH_REWARD_SERVICE_JAIL_SERVICE_MESSAGES_H_
#define WARPSMITH_REWARD_SERVICE_JAIL_SERVICE_MESSAGES_H_

#include <cstdint>
#include <nlohmann/json.hpp>

#include "reward_service/jail/fields.h"

namespace warpsmith {

// Between service and referee. Each request has an `id` that its answer repeats.
namespace service {

struct Start : ToReferee {
  static constexpr char op[] = "start";
  static constexpr Trusted<nlohmann::json> referee_options{"referee_options"};  // of RefereeOptions
};

struct Started : ToService {
  static constexpr char op[] = "started";
  static constexpr Trusted<nlohmann::json> facts{"facts"};  // of RefereeFacts
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
  static constexpr Trusted<nlohmann::json> limits{"limits"};  // of JudgeLimits
  static constexpr Trusted<nlohmann::json> timing{"timing"};  // of TimingEffort
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
  static constexpr Trusted<nlohmann::json> facts{"facts"};  // of RefereeFacts
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
