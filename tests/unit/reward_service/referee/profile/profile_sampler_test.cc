#include "reward_service/referee/profile/profile_sampler.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/candidate_library.h"
#include "tests/support/catch.h"
#include "tests/support/sealed_jail.h"

namespace warpsmith {
namespace {

constexpr double kPeriodUs = 60;

const std::vector<int>& AllCores() {
  static const std::vector<int> cores = [] {
    cpu_set_t set;
    sched_getaffinity(0, sizeof(set), &set);
    std::vector<int> found;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(static_cast<size_t>(core), &set)) found.push_back(core);
    }
    return found;
  }();
  return cores;
}

bool CannotSample() {
  if (ProfileSampler::IsPossible()) return false;
  WARN("skipped: this machine forbids sampling");
  return true;
}

// What a call does, as the candidate reads it from its input.
struct Work {
  float milliseconds = 0;  // of the processor's time
  float in_thread = 0;     // 1: in a thread that starts and ends within the call
  // 1: in the C library's memset, which has vectors; 2: there as well, but for a few vectors of its own; 3: in vector
  // math.
  float in_library = 0;
};

// A jail with that candidate.
class Worker {
 public:
  Worker() {
    static const UniqueFd library =
        CompileCandidate(CandidateBody("if (x[1] > 0) std::thread(Compute, x[0]).join();\n"
                                       "else if (x[2] > 0) Clear(x[0], x[2]);\n"
                                       "else Compute(x[0]);",
                                       R"(#include <immintrin.h>
#include <cstring>
#include <ctime>
#include <thread>
volatile double sink;
double Milliseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
}
void Compute(float milliseconds) {
  const double start = Milliseconds();
  while (Milliseconds() - start < milliseconds) {
    for (int i = 1; i < 20000; ++i) sink = sink + 1.0 / i;
  }
}
char room[16384];
void* (*volatile clear)(void*, int, size_t) = std::memset;
extern "C" __m256 _ZGVdN8v_expf(__m256);
__attribute__((target("avx2"))) __m256 Vectors(int number) {
  __m256 sum = _mm256_set1_ps(number);
  for (int i = 0; i < number; ++i) sum = _mm256_add_ps(_mm256_mul_ps(sum, sum), _mm256_set1_ps(i));
  return sum;
}
__attribute__((target("avx2"))) void Clear(float milliseconds, float how) {
  const double start = Milliseconds();
  while (Milliseconds() - start < milliseconds) {
    if (how < 3) {
      for (int i = 0; i < 200; ++i) clear(room, i, sizeof(room));
    }
    if (how == 2) sink = sink + Vectors(200)[0];
    if (how < 3) continue;
    __m256 value = _mm256_set1_ps(1);
    for (int i = 0; i < 1000; ++i) value = _ZGVdN8v_expf(_mm256_sub_ps(value, value));
    sink = sink + value[0];
  }
}
)"));
    const nlohmann::json one = {{{"code", 2}, {"bits", 32}, {"shape", {4}}}};
    const TaskLayout layout =
        *MakeLayout({{"inputs", one}, {"parameters", nlohmann::json::array()}, {"outputs", one}}, 1 << 20);
    auto process = TestNativeZygote().Fork({"python", int64_t{1} << 30, 60, 1});
    REQUIRE(process.ok());
    jail_ =
        std::make_unique<Jail>(*std::move(process), *MakeBuffers(HostStore(), layout, CandidateKind::kNative),
                               layout, JudgeLimits{.cpu_seconds_max = 60, .call_seconds_max = 60});
    draw_.inputs = std::make_unique<char[]>(static_cast<size_t>(layout.input_buffer_bytes));
    Program program;
    program.library_fd = library.get();
    REQUIRE_FALSE(*jail_->Begin(program, nullptr));
  }

  // One call, the first, sampled.
  void SampleCall(ProfileSampler& sampler, const Work& work, double expected_us) {
    std::memcpy(draw_.inputs.get(), &work, sizeof(work));
    jail_->Load(draw_);
    REQUIRE(sampler.Attach(jail_->process().pid(), AllCores(), expected_us).ok());
    REQUIRE_FALSE(jail_->Run());
    sampler.Collect();
  }

 private:
  std::unique_ptr<Jail> jail_;
  Draw draw_;
};

v1::Profile Reported(const ProfileSampler& sampler) {
  v1::Profile profile;
  sampler.Report(&profile);
  return profile;
}

TEST_CASE("a machine that forbids sampling says so at once, and nothing is reported of no samples") {
  ProfileSampler sampler(kPeriodUs);
  if (!ProfileSampler::IsPossible()) CHECK(absl::IsUnavailable(sampler.Attach(getpid(), AllCores())));
  CHECK(sampler.num_samples() == 0);
  const v1::Profile nothing = Reported(sampler);
  CHECK(nothing.num_samples() == 0);
  CHECK(nothing.own_code_share() == 0);
  CHECK(nothing.vector_bits() == 0);
}

TEST_CASE("what a candidate's own code does is its own, in the call's thread and in one that has ended") {
  if (CannotSample()) return;
  for (const float in_thread : {0.0F, 1.0F}) {
    ProfileSampler sampler(kPeriodUs);
    Worker().SampleCall(sampler, {.milliseconds = 20, .in_thread = in_thread}, /*expected_us=*/20'000);
    const v1::Profile profile = Reported(sampler);
    CHECK(profile.num_samples() > 10);
    CHECK(profile.own_code_share() > 0.5);
    CHECK(profile.num_threads() == 1);
  }
}

TEST_CASE("vectors of the C library are not those of the code that calls it, but for those of vector math") {
  if (CannotSample() || !__builtin_cpu_supports("avx2")) return;
  for (const float in_library : {1.0F, 2.0F, 3.0F}) {
    INFO(in_library);
    ProfileSampler sampler(kPeriodUs);
    Worker().SampleCall(sampler, {.milliseconds = 40, .in_library = in_library}, /*expected_us=*/40'000);
    const v1::Profile profile = Reported(sampler);
    CHECK(profile.num_samples() > 10);
    CHECK(profile.own_code_share() > 0.5);
    CHECK(profile.libc_share() > 0.5);
    CHECK((profile.vector_bits() == 256) == (in_library == 3));
  }
}

TEST_CASE("of a call that was longer than expected nothing is its own, for not all of it was seen") {
  if (CannotSample()) return;
  ProfileSampler sampler(kPeriodUs);
  Worker().SampleCall(sampler, {.milliseconds = 300}, /*expected_us=*/0);
  const v1::Profile profile = Reported(sampler);
  CHECK(profile.num_samples() > 0);
  CHECK(profile.own_code_share() == 0);
  ProfileSampler announced(kPeriodUs);
  Worker().SampleCall(announced, {.milliseconds = 300}, /*expected_us=*/300'000);
  CHECK(Reported(announced).own_code_share() > 0.5);
}

TEST_CASE(
    "a process that ends under the sampler leaves no samples, and one that is gone none to begin with") {
  for (const bool is_gone : {false, true}) {
    const pid_t pid = fork();
    if (pid == 0) {
      pause();
      _exit(0);
    }
    const auto end = [pid] {
      kill(pid, SIGKILL);
      REQUIRE(waitpid(pid, nullptr, 0) == pid);
    };
    ProfileSampler sampler(kPeriodUs);
    if (is_gone) end();
    if (!is_gone && CannotSample()) continue;
    REQUIRE(sampler.Attach(pid, AllCores()).ok());
    if (!is_gone) end();
    sampler.Collect();
    const v1::Profile profile = Reported(sampler);
    CHECK(profile.own_code_share() == 0);
    CHECK(profile.num_threads() == 0);
  }
}

TEST_CASE("the samples of all calls are reported together") {
  if (CannotSample()) return;
  ProfileSampler sampler(kPeriodUs);
  Worker().SampleCall(sampler, {.milliseconds = 20}, /*expected_us=*/20'000);
  const int num_first = sampler.num_samples();
  Worker().SampleCall(sampler, {.milliseconds = 20}, /*expected_us=*/20'000);
  CHECK(sampler.num_samples() > num_first);
  CHECK(Reported(sampler).num_samples() == sampler.num_samples());
}

}  // namespace
}  // namespace warpsmith
