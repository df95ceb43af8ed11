// Programs that a referee judges at once on a real GPU: what one does to the GPU is no other's fault.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "reward_service/referee/tensors/gpu_store.h"
#include "tests/gpu/gpu_referee.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// Another task of the same inputs: judgements of one task come one after the other.
std::string TaskNumber(int number) { return absl::StrCat(kTask, "\n# task ", number, "\n"); }

v1::Grade JudgeOn(int task, const UniqueFd& library, bool verify_only) {
  JudgeRequest request;
  request.library_fd = library.get();
  request.task = {Sha256Hex(TaskNumber(task)), TaskNumber(task)};
  request.verify_only = verify_only;
  request.limits.call_seconds_max = 3;
  const auto measurement = GpuReferee().Judge(request, absl::Now() + kPatience);
  WS_CHECK(measurement.ok()) << measurement.status().ToString();
  return measurement->grade();
}

// Has all memory that is free, for a tenth of a second of each call.
constexpr char kTakesAll[] = R"(
  size_t free_bytes = 0, num_bytes = 0;
  void* all = nullptr;
  cudaMemGetInfo(&free_bytes, &num_bytes);
  for (size_t left = free_bytes; all == nullptr && left > (64u << 20); left -= left / 64)
    if (cudaMalloc(&all, left) != cudaSuccess) cudaGetLastError();
  spin<<<1, 1, 0, stream>>>(y, 150000000);
  scaled<<<1024, 256, 0, stream>>>(x, weight, y, n);
  cudaStreamSynchronize(stream);
  cudaFree(all);
)";
// Has it until its process ends.
constexpr char kKeepsAll[] = R"(
  static void* all = nullptr;
  size_t free_bytes = 0, num_bytes = 0;
  cudaMemGetInfo(&free_bytes, &num_bytes);
  for (size_t left = free_bytes; all == nullptr && left > (64u << 20); left -= left / 64)
    if (cudaMalloc(&all, left) != cudaSuccess) cudaGetLastError();
  scaled<<<1024, 256, 0, stream>>>(x, weight, y, n);
)";
// Is wrong, and says nothing, where it finds no memory.
constexpr char kUnchecked[] = R"(
  float* scratch = nullptr;
  if (cudaMalloc(&scratch, size_t{4} << 30) == cudaSuccess) {
    scaled<<<1024, 256, 0, stream>>>(x, weight, scratch, n);
    cudaMemcpyAsync(y, scratch, sizeof(float) * n, cudaMemcpyDeviceToDevice, stream);
    cudaStreamSynchronize(stream);
  }
  cudaFree(scratch);
  cudaGetLastError();
)";

// The programs with these launches, compiled side by side.
std::vector<UniqueFd> CompileAll(const std::vector<std::string>& launches) {
  std::vector<UniqueFd> libraries(launches.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < launches.size(); ++i)
    threads.emplace_back([&, i] { libraries[i] = Compile(Source(kKernel, launches[i])); });
  for (std::thread& thread : threads) thread.join();
  return libraries;
}

// What others see of the GPU meanwhile, and how long a look takes them.
class Looks {
 public:
  Looks() : store_(*GpuStore::Open(0)), thread_([this] { Look(); }) {}
  ~Looks() {
    ends_ = true;
    thread_.join();
    std::printf("%d looks at the memory, %.0f us on the average, at most %.0f us; at least %.1f GB free\n",
                num_, sum_us_ / num_, max_us_, static_cast<double>(least_) * 1e-9);
  }
  Looks(const Looks&) = delete;
  Looks& operator=(const Looks&) = delete;

 private:
  void Look() {
    while (!ends_) {
      const absl::Time begin = absl::Now();
      least_ = std::min(least_, store_->FreeBytes().value_or(least_));
      const double us = absl::ToDoubleMicroseconds(absl::Now() - begin);
      ++num_;
      sum_us_ += us;
      max_us_ = std::max(max_us_, us);
      absl::SleepFor(absl::Milliseconds(5));
    }
  }

  const std::unique_ptr<GpuStore> store_;
  std::atomic<bool> ends_ = false;
  int num_ = 0;
  double sum_us_ = 0, max_us_ = 0;
  int64_t least_ = int64_t{1} << 60;
  std::thread thread_;
};

TEST_CASE("programs are right beside one that takes all memory, for a while or for good") {
  const std::vector<UniqueFd> libraries = CompileAll({kUnchecked, kTakesAll, kKeepsAll});
  const UniqueFd& unchecked = libraries[0];
  // By itself it is right: all tasks are made ready here.
  for (int task = 1; task <= 3; ++task)
    REQUIRE(JudgeOn(task, unchecked, /*verify_only=*/true).verdict() == v1::VERDICT_CORRECT);
  for (const UniqueFd* hog : {&libraries[1], &libraries[2]}) {
    const Looks looks;
    std::atomic<int> num_right = 0, num_judged = 0;
    const absl::Time begin = absl::Now(), end = begin + absl::Seconds(4);
    std::vector<std::thread> threads;
    for (int task = 0; task <= 2; ++task) {
      threads.emplace_back([&, task] {
        const UniqueFd& library = task == 0 ? *hog : unchecked;
        while (absl::Now() < end) {
          const v1::Grade grade = JudgeOn(task, library, /*verify_only=*/true);
          ++num_judged;
          if (grade.verdict() == v1::VERDICT_CORRECT) ++num_right;
          if (grade.verdict() != v1::VERDICT_CORRECT)
            std::printf("task %d: %s\n", task, grade.verdict_reason().c_str());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    // A run that is ended says what it saw.
    std::printf("%d of %d right in %.1f s\n", num_right.load(), num_judged.load(),
                absl::ToDoubleSeconds(absl::Now() - begin));
    std::fflush(stdout);
    CHECK(num_right == num_judged);
  }
}

TEST_CASE("programs are timed beside one that keeps all memory, which ends no referee") {
  const std::vector<UniqueFd> libraries = CompileAll({kLaunch, kKeepsAll});
  absl::Mutex others;  // as a service asks once more, alone, where memory was wanting
  std::atomic<int> num_judged = 0, num_right = 0, num_lacking = 0;
  const auto judge = [&](const JudgeRequest& request) -> absl::StatusOr<v1::Measurement> {
    {
      absl::ReaderMutexLock lock(&others);
      auto measured = GpuReferee().Judge(request, absl::Now() + kPatience);
      if (!absl::IsResourceExhausted(measured.status())) return measured;
    }
    ++num_lacking;
    absl::WriterMutexLock lock(&others);
    return GpuReferee().Judge(request, absl::Now() + kPatience);
  };
  const absl::Time begin = absl::Now(), end = begin + absl::Seconds(6);
  std::vector<std::thread> threads;
  for (int i = 0; i <= 2; ++i) {
    threads.emplace_back([&, i] {
      for (int task = 100 * (i + 1); absl::Now() < end;
           ++task) {  // each needs an oracle and a reference of its own
        JudgeRequest request;
        request.library_fd = libraries[i == 0 ? 1 : 0].get();
        request.task = {Sha256Hex(TaskNumber(task)), TaskNumber(task)};
        request.limits.call_seconds_max = 3;
        const auto measured = judge(request);
        ++num_judged;
        const bool is_right = measured.ok() && measured->grade().verdict() == v1::VERDICT_CORRECT;
        if (is_right) ++num_right;
        if (!is_right) {
          std::printf("task %d: %s\n", task,
                      measured.ok() ? measured->grade().verdict_reason().c_str()
                                    : measured.status().ToString().c_str());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%d of %d right in %.1f s, %d asked once more for want of memory\n", num_right.load(),
              num_judged.load(), absl::ToDoubleSeconds(absl::Now() - begin), num_lacking.load());
  std::fflush(stdout);
  CHECK(num_right == num_judged);
}

TEST_CASE("a program is timed beside others that fault, and each has its own verdict") {
  const std::vector<UniqueFd> libraries =
      CompileAll({kLaunch, "  scaled<<<1024, 256, 0, stream>>>(nullptr, weight, y, n);\n"});
  const UniqueFd& right = libraries[0];
  const UniqueFd& faults = libraries[1];
  const v1::Grade alone = JudgeOn(4, right, /*verify_only=*/false);
  REQUIRE(alone.verdict() == v1::VERDICT_CORRECT);
  std::atomic<bool> ends = false;
  std::atomic<int> num_faults = 0, num_others = 0;
  std::vector<std::thread> threads;
  for (int task = 5; task <= 6; ++task) {
    threads.emplace_back([&, task] {
      while (!ends) {
        const v1::Verdict verdict = JudgeOn(task, faults, /*verify_only=*/true).verdict();
        ++(verdict == v1::VERDICT_RUNTIME_ERROR ? num_faults : num_others);
      }
    });
  }
  for (int i = 0; i < 3; ++i) {
    const v1::Grade grade = JudgeOn(4, right, /*verify_only=*/false);
    CHECK(grade.verdict() == v1::VERDICT_CORRECT);
    std::printf("speed-up %.2f, %.1f us; alone %.2f, %.1f us\n", grade.timing().speedup(),
                grade.timing().candidate().median_us(), alone.timing().speedup(),
                alone.timing().candidate().median_us());
    std::fflush(stdout);
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("%d faults beside them\n", num_faults.load());
  CHECK(num_faults > 0);
  CHECK(num_others == 0);
}

}  // namespace
}  // namespace warpsmith
