#include "reward_service/measure/request_json.h"

#include <cctype>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/messages.h"

namespace warpsmith {

namespace {

using jail::Extension;
using service::Effort;
using service::Facts;
using service::Limits;

absl::StatusOr<std::vector<std::string>> Texts(const nlohmann::json& fields, const ListField& field) {
  std::vector<std::string> texts;
  const nlohmann::json* const found = Find(fields, field);
  if (found == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("load_inline: ", field.name, " is no list of at most ", field.num_max));
  }
  for (const nlohmann::json& text : *found) {
    if (!text.is_string())
      return absl::InvalidArgumentError(absl::StrCat("load_inline: ", field.name, " holds no text"));
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

bool IsIdentifier(const std::string& name) {
  if (name.empty() || name.size() > Extension::kNameBytesMax ||
      std::isdigit(static_cast<unsigned char>(name[0])) != 0)
    return false;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
  }
  return true;
}

absl::StatusOr<ExtensionRecord> ReadExtension(const nlohmann::json& fields) {
  ExtensionRecord record;
  const nlohmann::json* const name = Find(fields, Extension::name);
  if (name == nullptr || !name->is_string()) return absl::InvalidArgumentError("load_inline: no name");
  record.name = name->get<std::string>();
  if (!IsIdentifier(record.name)) return absl::InvalidArgumentError("load_inline: the name is no identifier");
  ASSIGN_OR_RETURN(record.cpp_sources, Texts(fields, Extension::cpp_sources));
  ASSIGN_OR_RETURN(record.cuda_sources, Texts(fields, Extension::cuda_sources));
  ASSIGN_OR_RETURN(record.functions, Texts(fields, Extension::functions));
  ASSIGN_OR_RETURN(record.extra_cflags, Texts(fields, Extension::extra_cflags));
  ASSIGN_OR_RETURN(record.extra_cuda_cflags, Texts(fields, Extension::extra_cuda_cflags));
  ASSIGN_OR_RETURN(record.extra_ldflags, Texts(fields, Extension::extra_ldflags));
  record.with_cuda = Read(fields, Extension::with_cuda);
  record.kernels = Read(fields, Extension::kernels);
  return record;
}

cuda::GpuFacts GpuFromJson(const nlohmann::json& fields) {
  using service::Gpu;
  return {.index = Read(fields, Gpu::index),
          .name = Read(fields, Gpu::name),
          .uuid = Read(fields, Gpu::uuid),
          .driver_version = Read(fields, Gpu::driver_version),
          .capability_major = Read(fields, Gpu::capability_major),
          .capability_minor = Read(fields, Gpu::capability_minor),
          .memory_bytes = Read(fields, Gpu::memory_bytes),
          .l2_cache_bytes = Read(fields, Gpu::l2_cache_bytes),
          .num_multiprocessors = Read(fields, Gpu::num_multiprocessors),
          .sm_clock_max_mhz = Read(fields, Gpu::sm_clock_max_mhz)};
}

}  // namespace

nlohmann::json ToJson(const cuda::GpuFacts& gpu) {
  using service::Gpu;
  return {{Gpu::index, gpu.index},
          {Gpu::name, gpu.name},
          {Gpu::uuid, gpu.uuid},
          {Gpu::driver_version, gpu.driver_version},
          {Gpu::capability_major, gpu.capability_major},
          {Gpu::capability_minor, gpu.capability_minor},
          {Gpu::memory_bytes, gpu.memory_bytes},
          {Gpu::l2_cache_bytes, gpu.l2_cache_bytes},
          {Gpu::num_multiprocessors, gpu.num_multiprocessors},
          {Gpu::sm_clock_max_mhz, gpu.sm_clock_max_mhz}};
}

std::vector<cuda::GpuFacts> GpusFromJson(const nlohmann::json& list) {
  std::vector<cuda::GpuFacts> gpus;
  for (const nlohmann::json& fields : list) gpus.push_back(GpuFromJson(fields));
  return gpus;
}

nlohmann::json ToJson(const RefereeFacts& facts) {
  return {{Facts::lane_cores, facts.lane_cores},
          {Facts::realtime, facts.realtime},
          {Facts::profile, facts.profile},
          {Facts::torch_version, facts.torch_version},
          {Facts::torch_cpu_capability, facts.torch_cpu_capability},
          {Facts::empty_call_us, facts.empty_call_us},
          {Facts::sample_us, facts.sample_us},
          {Facts::gigabytes_per_second_ceiling, facts.gigabytes_per_second_ceiling},
          {Facts::nearest_cache_gigabytes_per_second, facts.nearest_cache_gigabytes_per_second},
          {Facts::gpu, facts.gpu ? ToJson(*facts.gpu) : nlohmann::json()}};
}

RefereeFacts FactsFromJson(const nlohmann::json& fields) {
  const nlohmann::json& gpu = Read(fields, Facts::gpu);
  return {.lane_cores = Read(fields, Facts::lane_cores),
          .realtime = Read(fields, Facts::realtime),
          .profile = Read(fields, Facts::profile),
          .torch_version = Read(fields, Facts::torch_version),
          .torch_cpu_capability = Read(fields, Facts::torch_cpu_capability),
          .empty_call_us = Read(fields, Facts::empty_call_us),
          .sample_us = Read(fields, Facts::sample_us),
          .gigabytes_per_second_ceiling = Read(fields, Facts::gigabytes_per_second_ceiling),
          .nearest_cache_gigabytes_per_second = Read(fields, Facts::nearest_cache_gigabytes_per_second),
          .gpu = gpu.is_null() ? std::nullopt : std::optional(GpuFromJson(gpu))};
}

nlohmann::json ToJson(const JudgeLimits& limits) {
  return {{Limits::cpu_seconds_max, limits.cpu_seconds_max},
          {Limits::call_seconds_max, limits.call_seconds_max},
          {Limits::lane_seconds_max, limits.lane_seconds_max}};
}

JudgeLimits LimitsFromJson(const nlohmann::json& fields) {
  return {.cpu_seconds_max = Read(fields, Limits::cpu_seconds_max),
          .call_seconds_max = Read(fields, Limits::call_seconds_max),
          .lane_seconds_max = Read(fields, Limits::lane_seconds_max)};
}

nlohmann::json ToJson(const TimingEffort& timing) {
  return {{Effort::num_instances_min, timing.num_instances_min},
          {Effort::num_instances_max, timing.num_instances_max},
          {Effort::num_rounds_max, timing.num_rounds_max},
          {Effort::relative_width_max, timing.relative_width_max},
          {Effort::baselines, timing.baselines}};
}

TimingEffort TimingFromJson(const nlohmann::json& fields) {
  return {.num_instances_min = Read(fields, Effort::num_instances_min),
          .num_instances_max = Read(fields, Effort::num_instances_max),
          .num_rounds_max = Read(fields, Effort::num_rounds_max),
          .relative_width_max = Read(fields, Effort::relative_width_max),
          .baselines = Read(fields, Effort::baselines)};
}

absl::StatusOr<std::vector<ExtensionRecord>> ExtensionsFromJson(const nlohmann::json& list,
                                                                bool own_kernels) {
  constexpr size_t kExtensionsMax = service::Recorded::kExtensionsMax;
  if (!list.is_array() || list.size() > kExtensionsMax) {
    return absl::InvalidArgumentError(absl::StrCat("more than ", kExtensionsMax, " calls of load_inline"));
  }
  std::vector<ExtensionRecord> records;
  for (const nlohmann::json& fields : list) {
    ASSIGN_OR_RETURN(ExtensionRecord record, ReadExtension(fields));
    if (!record.kernels.empty() && !own_kernels) continue;  // made up: it was not asked for any
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace warpsmith
