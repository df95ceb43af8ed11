// The engine on a GPU, from jobs to samples.
#include "rollout_workers/device/step_device_cuda.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/base/counter_random.h"
#include "rollout_workers/batch.h"
#include "rollout_workers/device/step_device_group.h"
#include "rollout_workers/paged_device_batch.h"
#include "tests/gpu/small_device_model.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using Place = std::pair<int, int>;  // task, sample
using Samples = std::map<Place, FinishedSample>;

EngineOptions Options(DeviceDtype dtype = DeviceDtype::kBfloat16) {
  EngineOptions options{.num_slots = 16, .context_tokens_max = 512};
  options.cuda = CudaPlacement{.dtype = dtype, .num_pages = 16 * 32 + 1, .prefill_tokens_max = 128};
  return options;
}

GenerationJob Job(const std::vector<int>& prompt_lengths, int num_samples, double temperature = 1) {
  GenerationJob job{.id = 1, .sampling = {.temperature = temperature, .answer_tokens_max = 60}};
  for (int task = 0; task < std::ssize(prompt_lengths); ++task) {
    GenerationGroup group{.task_index = task};
    for (int i = 0; i < prompt_lengths[task]; ++i) {
      group.prompt_token_ids.push_back(static_cast<int32_t>(UniformWord(task, i) % 1024));
    }
    for (int s = 0; s < num_samples; ++s) {
      group.samples.push_back({.sample_index = s, .seed = UniformWord(100 + task, s)});
    }
    job.groups.push_back(std::move(group));
  }
  return job;
}

// What a batch makes of `job` with weights of `seed`.
Samples Run(const EngineOptions& options, const GenerationJob& job, uint64_t seed = 1) {
  absl::StatusOr<std::unique_ptr<Batch>> batch = MakeBatch(SmallDeviceModel(), options);
  INFO(batch.status().message());
  REQUIRE(batch.ok());
  REQUIRE((*batch)
              ->SetWeights(RandomWeights(SmallDeviceModel(), seed), paged::EntriesOnChange::kRequireNone)
              .ok());
  (*batch)->Add(job);
  Samples samples;
  for (int i = 0; !(*batch)->empty(); ++i) {
    REQUIRE(i < 10'000);
    Batch::Outcome outcome = (*batch)->Step();
    for (const FailedJob& failed : outcome.failed) FAIL(failed.status.ToString());
    for (FinishedSample& sample : outcome.finished) {
      samples[{sample.task_index, sample.sample_index}] = std::move(sample);
    }
  }
  return samples;
}

// Holds a stream until the test lets go.
void CUDART_CB WaitForTest(void* notification) {
  static_cast<absl::Notification*>(notification)->WaitForNotificationWithTimeout(absl::Seconds(30));
}

int NumDifferent(const Samples& a, const Samples& b) {
  REQUIRE(a.size() == b.size());
  return static_cast<int>(std::count_if(a.begin(), a.end(), [&](const auto& entry) {
    const FinishedSample& other = b.at(entry.first);
    return entry.second.answer_token_ids != other.answer_token_ids ||
           entry.second.log_probs != other.log_probs;
  }));
}

}  // namespace

TEST_CASE("graphs, direct launches and another run give the same tokens and log-probs to the bit") {
  const DeviceDtype dtype = GENERATE(DeviceDtype::kBfloat16, DeviceDtype::kFloat16);
  const GenerationJob job = Job({70, 3, 16, 200}, 4);
  const Samples graphs = Run(Options(dtype), job);
  REQUIRE(graphs.size() == 16);
  EngineOptions direct = Options(dtype);
  direct.cuda->decode_buckets = {1};  // larger steps have none
  CHECK(NumDifferent(graphs, Run(direct, job)) == 0);
  CHECK(NumDifferent(graphs, Run(Options(dtype), job)) == 0);
  CHECK(NumDifferent(graphs, Run(Options(dtype), job, 2)) == 16);
}

TEST_CASE(
    "batch-invariant samples are the same to the bit alone, among others, in chunks and out of few pages") {
  const DeviceDtype dtype = GENERATE(DeviceDtype::kBfloat16, DeviceDtype::kFloat16);
  const GenerationJob job = Job({70, 3, 16, 200}, 4);
  const Samples together = Run(Options(dtype), job);
  for (const int num_slots : {1, 5}) {
    EngineOptions few = Options(dtype);
    few.num_slots = num_slots;
    CHECK(NumDifferent(together, Run(few, job)) == 0);
  }
  EngineOptions chunks = Options(dtype);
  chunks.cuda->prefill_tokens_max = 17;
  CHECK(NumDifferent(together, Run(chunks, job)) == 0);
  EngineOptions scarce = Options(dtype);
  scarce.cuda->num_pages = 40;  // preempts
  CHECK(NumDifferent(together, Run(scarce, job)) == 0);
}

TEST_CASE("log-probs of greedy answers are those of the CPU but for the roundings of 16 bits") {
  const auto [dtype, margin] =
      GENERATE(std::pair{DeviceDtype::kBfloat16, 0.1}, std::pair{DeviceDtype::kFloat16, 0.02});
  const GenerationJob job = Job({70, 3}, 1, 0);
  EngineOptions cpu = Options();
  cpu.cuda.reset();
  const Samples on_gpu = Run(Options(dtype), job), on_cpu = Run(cpu, job);
  for (const auto& [place, sample] : on_gpu) {
    // Until rounding picks another of two near logits.
    const FinishedSample& other = on_cpu.at(place);
    for (size_t i = 0; i < sample.log_probs.size(); ++i) {
      CHECK(sample.log_probs[i] == Approx(other.log_probs[i]).margin(margin));
      if (sample.answer_token_ids[i] != other.answer_token_ids[i]) break;
    }
  }
}

TEST_CASE("200 greedy tokens in float32 are the CPU's, alone and where samples share pages of a prompt") {
  GenerationJob job = Job({70, 3, 200}, 2, 0);
  job.sampling.answer_tokens_max = 200;
  EngineOptions cpu = Options(), float32 = Options();
  cpu.cuda.reset();
  float32.cuda->dtype = DeviceDtype::kFloat32;
  const Samples on_cpu = Run(cpu, job);
  double largest = 0;
  for (const auto& [place, sample] : Run(float32, job)) {
    INFO("task " << place.first << ", sample " << place.second);
    const FinishedSample& other = on_cpu.at(place);
    CHECK(sample.answer_token_ids == other.answer_token_ids);
    for (size_t i = 0; i < sample.log_probs.size(); ++i) {
      largest = std::max<double>(largest, std::abs(sample.log_probs[i] - other.log_probs.at(i)));
    }
  }
  std::printf("6 x 200 greedy tokens in float32: log-probs within %.1e of the CPU's\n", largest);
  CHECK(largest <= 1e-4);
}

// That they do not depend on what decodes beside them is not promised; what was seen is printed.
TEST_CASE("samples in float32 repeat to the bit") {
  const GenerationJob job = Job({70, 3, 16, 200}, 4);
  EngineOptions graphs = Options();
  graphs.cuda->dtype = DeviceDtype::kFloat32;
  EngineOptions direct = graphs, few = graphs;
  direct.cuda->decode_buckets = {1};  // larger steps have none
  few.num_slots = 3;
  const Samples expected = Run(graphs, job);
  CHECK(NumDifferent(expected, Run(graphs, job)) == 0);
  std::printf("samples in float32 with other bits: %d of 16 by direct launches, %d of 16 in small batches\n",
              NumDifferent(expected, Run(direct, job)), NumDifferent(expected, Run(few, job)));
}

TEST_CASE("what narrows sampling reaches the device: top-k 1, min-p 1 and a tiny top-p are greedy") {
  const GenerationJob greedy = Job({70, 3}, 2, 0);
  const Samples wanted = Run(Options(), greedy);
  for (const SamplingParameters& narrow : {SamplingParameters{.top_k = 1}, SamplingParameters{.top_p = 1e-6},
                                           SamplingParameters{.min_p = 1.0}}) {
    GenerationJob job = greedy;
    job.sampling = narrow;
    job.sampling.answer_tokens_max = greedy.sampling.answer_tokens_max;
    CHECK(NumDifferent(wanted, Run(Options(), job)) == 0);
  }
}

TEST_CASE("pages can be given back and taken again, and steps after that are as before") {
  const device::CudaStepOptions options{.num_pages = 65,
                                        .sequences_max = 4,
                                        .prefill_tokens_max = 64,
                                        .context_tokens_max = 256,
                                        .decode_buckets = {1, 2, 4},
                                        .num_token_ids = 1024};
  const paged::PagedBatchOptions paged{.num_pages = 65,
                                       .sequences_max = 4,
                                       .context_tokens_max = 256,
                                       .prefill_tokens_max = 64,
                                       .decode_buckets = {1, 2, 4},
                                       .num_token_ids = 1024};
  std::unique_ptr<device::CudaStepDevice> device =
      device::CudaStepDevice::Create(SmallDeviceModel(), options).value();
  REQUIRE(device->FillRandom(3).ok());
  const auto run = [&] {
    const std::unique_ptr<paged::PagedBatch> batch = paged::PagedBatch::Create(paged, 0).value();
    paged::PagedRequest request{.id = 1, .seeds = {1, 2}, .answer_tokens_max = 20};
    for (int i = 0; i < 50; ++i) request.prompt_token_ids.push_back(i);
    REQUIRE(batch->Submit(request).ok());
    std::map<int, std::vector<float>> log_probs;
    while (!batch->empty()) {
      const paged::StepPlan plan = batch->Plan();
      REQUIRE(device->Launch(plan).ok());
      for (const paged::FinishedAnswer& answer : batch->Complete(device->AwaitOldest().value()).finished) {
        log_probs[answer.sample_index] = answer.log_probs;
      }
    }
    return log_probs;
  };
  const auto before = run();
  REQUIRE(before.size() == 2);
  for (int i = 0; i < 2; ++i) {
    device->FreePages();
    device->FreePages();
    REQUIRE(device->AllocatePages().ok());
    REQUIRE(device->AllocatePages().ok());
    CHECK(run() == before);
  }
}

TEST_CASE("a step that is not done in time is an error that names it, and its process loses the GPU") {
  const device::CudaStepOptions options{.num_pages = 33,
                                        .sequences_max = 1,
                                        .prefill_tokens_max = 64,
                                        .context_tokens_max = 512,
                                        .decode_buckets = {1},
                                        .num_token_ids = 1024,
                                        .step_timeout = absl::Milliseconds(200)};
  const paged::PagedBatchOptions paged{.num_pages = 33, .sequences_max = 1, .num_token_ids = 1024};
  absl::Notification go;
  std::unique_ptr<device::CudaStepDevice> device =
      device::CudaStepDevice::Create(SmallDeviceModel(), options).value();
  REQUIRE(device->FillRandom(3).ok());
  REQUIRE(cudaLaunchHostFunc(device->stream(), WaitForTest, &go) == cudaSuccess);
  const std::unique_ptr<paged::PagedBatch> batch = paged::PagedBatch::Create(paged, 0).value();
  REQUIRE(batch->Submit({.id = 1, .prompt_token_ids = {1, 2}, .seeds = {1}, .answer_tokens_max = 20}).ok());
  const paged::StepPlan plan = batch->Plan();
  REQUIRE(device->Launch(plan).ok());
  const absl::Status late = device->AwaitOldest().status();
  CHECK(absl::IsDeadlineExceeded(late));
  CHECK_THAT(std::string(late.message()), Catch::Contains("Step 0 of cuda:0"));
  device->DropSteps();
  CHECK(absl::IsDeadlineExceeded(device->Launch(plan)));
  CHECK(absl::IsDeadlineExceeded(device->FillRandom(4)));
  device.reset();
  go.Notify();
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

// In a process of its own, as other tests of GPUs that are lost.
TEST_CASE("a GPU that stands still while it gives its pages back is lost, and nobody waits for it",
          "[.][lost]") {
  const device::CudaStepOptions options{.num_pages = 33,
                                        .sequences_max = 1,
                                        .prefill_tokens_max = 64,
                                        .context_tokens_max = 512,
                                        .decode_buckets = {1},
                                        .num_token_ids = 1024};
  std::unique_ptr<device::CudaStepDevice> member =
      device::CudaStepDevice::Create(SmallDeviceModel(), options).value();
  cudaStream_t const stream = member->stream();
  std::vector<device::StepDeviceGroup::Member> members;
  members.push_back({"cuda:0", std::move(member)});
  auto device = std::make_unique<device::StepDeviceGroup>(std::move(members), nullptr,
                                                          absl::Milliseconds(300), absl::Milliseconds(300));
  REQUIRE(device->FillRandom(3).ok());
  absl::Notification go;
  REQUIRE(cudaLaunchHostFunc(stream, WaitForTest, &go) == cudaSuccess);
  const absl::Time begin = absl::Now();
  device->FreePages();
  CHECK(absl::IsDeadlineExceeded(device->lost()));
  INFO(device->lost().message());
  CHECK(device->FillRandom(4) == device->lost());
  device.reset();
  CHECK(absl::Now() - begin < absl::Seconds(10));
  go.Notify();
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

TEST_CASE("a GPU that is not there or too small is refused with the values") {
  CHECK(
      absl::IsFailedPrecondition(device::OpenCudaStepDevice(SmallDeviceModel(), {.devices = {63}}).status()));
  device::CudaStepOptions tiny{
      .memory_share = 0.01, .sequences_max = 1, .context_tokens_max = int64_t{1} << 20};
  const absl::Status status = device::OpenCudaStepDevice(SmallDeviceModel(), tiny).status();
  INFO(status.message());
  CHECK(absl::IsResourceExhausted(status));
}

}  // namespace warpsmith
