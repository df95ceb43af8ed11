#include "reward_service/grading/stages.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/compiler/diagnostics.h"
#include "reward_service/grading/kernel_binaries.h"
#include "reward_service/grading/merge.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kDeviceWaitMax = absl::Seconds(1);
constexpr absl::Duration kDeviceWaitTold = absl::Seconds(60);  // in the log

// Whether a program can want anything compiled: what does it cannot be reached without one of these words,
// but for programs that hide them, and those find nothing compiled for them.
bool MayCompile(const PreparedRequest& prepared) {
  const auto names = [&](const char* word) { return prepared.source.find(word) != std::string::npos; };
  return names("cpp_extension") || names("load_inline") ||
         (prepared.device == v1::DEVICE_CUDA && names("triton"));
}

// `compile` is that of the extensions before this one: their kernels stay, all else is told of the last.
v1::Compile CompileOf(const CompiledProgram& program, const std::string& host_compiler,
                      v1::Compile compile = {}) {
  compile.set_attempted(true);
  compile.set_succeeded(program.succeeded());
  compile.set_diagnostics(program.diagnostics);
  compile.set_compiler(program.compiler.empty() ? host_compiler : program.compiler);
  compile.set_cached(program.cached);
  compile.set_headers(program.headers);
  for (const Cubin& cubin : program.cubins) AddKernels(cubin.architecture, cubin.bytes, &compile);
  return compile;
}

void Conclude(v1::Verdict verdict, std::string reason, Flight* flight) {
  flight->measurement.mutable_grade()->set_verdict(verdict);
  flight->measurement.mutable_grade()->set_verdict_reason(std::move(reason));
}

Route Refuse(const v1::Compile& compile, Flight* flight) {
  *flight->measurement.mutable_grade()->mutable_compile() = compile;
  Conclude(v1::VERDICT_COMPILE_ERROR, FirstError(compile.diagnostics()), flight);
  return Route::kFinish;
}

// To what the stages so far have filled in. Both the flight and the referee have waited for the lane.
void AddMeasured(const v1::Measurement& measured, Flight* flight) {
  const double waited_seconds = flight->measurement.grade().cost().lane_wait_seconds();
  flight->measurement.MergeFrom(measured);
  flight->measurement.mutable_grade()->mutable_cost()->set_lane_wait_seconds(
      waited_seconds + measured.grade().cost().lane_wait_seconds());
}

Route GiveUp(const absl::Status& status, int num_attempts, Flight* flight) {
  flight->measurement = Unscorable(
      absl::StrCat("the referee failed ", num_attempts, " times, the last time with ", status.ToString()));
  return Route::kFinish;
}

// What the lane was: its cores, and the GPU where it has one.
void Stamp(const RefereeFacts& facts, v1::Environment* environment) {
  environment->set_lane_cores(facts.lane_cores);
  if (!facts.gpu) return;
  v1::GpuEnvironment* const gpu = environment->mutable_gpu();
  gpu->set_name(Escape(facts.gpu->name, 128));
  gpu->set_uuid(facts.gpu->uuid);
  gpu->set_driver_version(facts.gpu->driver_version);
  gpu->set_architecture(facts.gpu->architecture());
  gpu->set_memory_bytes(facts.gpu->memory_bytes);
}

}  // namespace

Route FirstRoute(const PreparedRequest& prepared) {
  return prepared.is_native() || MayCompile(prepared) ? Route::kCompile : Route::kJudge;
}

bool WantsRecording(const Flight& flight) {
  return !flight.prepared->is_native() && !flight.extensions_recorded;
}

Route CompileStage::Run(Flight* flight) const {
  const absl::Time begin = absl::Now();
  v1::Cost* const waited = flight->measurement.mutable_grade()->mutable_cost();
  waited->set_queue_seconds(waited->queue_seconds() + absl::ToDoubleSeconds(begin - flight->queued_since));
  const Route next = flight->prepared->is_native() ? RunNative(flight) : RunExtensions(flight);
  // Asked for again: a failure has put another measurement in the place of the one above.
  v1::Cost* const cost = flight->measurement.mutable_grade()->mutable_cost();
  cost->set_compile_seconds(cost->compile_seconds() + absl::ToDoubleSeconds(absl::Now() - begin));
  return next;
}

Route CompileStage::RunNative(Flight* flight) const {
  const std::string& source = flight->prepared->source;
  if (static_cast<int64_t>(source.size()) > program_bytes_max_) {
    v1::Compile compile;
    compile.set_diagnostics(absl::StrCat("error: the program has ", source.size(), " bytes, at most ",
                                         program_bytes_max_, " are compiled\n"));
    return Refuse(compile, flight);
  }
  absl::StatusOr<CompiledProgram> program = native_(*flight->prepared, flight->cancelled);
  if (!program.ok()) return Failed(program.status(), flight);
  const v1::Compile compile = CompileOf(*program, compiler_version_);
  if (!program->succeeded()) return Refuse(compile, flight);
  *flight->measurement.mutable_grade()->mutable_compile() = compile;
  flight->library = program->library;
  return Route::kJudge;
}

Route CompileStage::RunExtensions(Flight* flight) const {
  const absl::Time begin = now_();
  for (const ExtensionRecord& record : flight->extensions) {
    if (now_() - begin > kExtensionsTimeMax) {
      v1::Compile compile;
      compile.set_diagnostics(absl::StrCat("error: the calls of load_inline before \"", record.name,
                                           "\" took over ", absl::ToInt64Seconds(kExtensionsTimeMax),
                                           " s to build\n"));
      return Refuse(compile, flight);
    }
    absl::StatusOr<CompiledProgram> program = extension_(record, flight->cancelled);
    if (!program.ok()) return Failed(program.status(), flight);
    const v1::Compile compile = CompileOf(*program, compiler_version_, flight->measurement.grade().compile());
    if (!program->succeeded()) return Refuse(compile, flight);
    *flight->measurement.mutable_grade()->mutable_compile() = compile;
    flight->extension_libraries.push_back(program->library);
  }
  return Route::kJudge;
}

Route CompileStage::Failed(const absl::Status& status, Flight* flight) const {
  if (flight->cancelled) return Route::kDrop;
  LogError(absl::StrCat("compiling failed: ", status.ToString()));
  flight->measurement = Unscorable(absl::StrCat("compiling failed: ", status.ToString()));
  return Route::kFinish;
}

absl::StatusOr<HeldDevice> JudgeStage::TakeDevice() {
  if (!lease_.has_value()) return HeldDevice();
  absl::StatusOr<DeviceLease::Held> held = lease_->Take(absl::Now() + kDeviceWaitMax);
  const absl::Time now = absl::Now();
  if (now - last_wait_ > kDeviceWaitTold) waits_since_ = absl::InfiniteFuture();  // nothing waited in between
  last_wait_ = now;
  is_lent_ = absl::IsDeadlineExceeded(held.status());
  if (!is_lent_) {
    waits_since_ = absl::InfiniteFuture();
    if (held.ok()) return HeldDevice(*std::move(held));
    LogError(absl::StrCat("programs are judged beside others' work: ", held.status().ToString()));
    return HeldDevice();
  }
  waits_since_ = std::min(waits_since_, now);
  if (now - waits_since_ >= kDeviceWaitTold) {
    LogWarning(absl::StrCat(held.status().message(), ": nothing is judged there meanwhile"));
    waits_since_ = now;
  }
  return held.status();
}

bool JudgeStage::Revive() {
  const absl::StatusOr<HeldDevice> held = TakeDevice();
  return held.ok() && ReviveReferee();
}

bool JudgeStage::ReviveReferee() {
  absl::MutexLock lock(&revival_);
  const absl::Status status = referee_->Revive();
  is_lost_ = !status.ok();
  if (status.ok()) return true;
  ++num_losses_;
  LogWarning(absl::StrCat("the referee of lane ", referee_->facts().lane_cores,
                          " cannot be started again: ", status.ToString()));
  return false;
}

void JudgeStage::NoteSuccess(int num_losses) {
  absl::MutexLock lock(&revival_);
  if (num_losses_ == num_losses) is_lost_ = false;
}

// A referee measures its GPU when it starts, and nobody may compute there meanwhile. The lane's own hold is its loop's.
absl::Status JudgeStage::ReviveToRecord(absl::Time deadline) const {
  if (!lease_.has_value()) return referee_->Revive();
  ASSIGN_OR_RETURN(DeviceLease lease, lease_->OpenAgain());
  ASSIGN_OR_RETURN(const DeviceLease::Held held, lease.Take(deadline));
  return referee_->Revive();
}

Route JudgeStage::Record(Flight* flight, LaneSurroundings surroundings) const {
  v1::Cost* const cost = flight->measurement.mutable_grade()->mutable_cost();
  const absl::Time begin = absl::Now();
  cost->set_queue_seconds(cost->queue_seconds() + absl::ToDoubleSeconds(begin - flight->queued_since));
  flight->queued_since = begin;
  const PreparedRequest& prepared = *flight->prepared;
  const TaskSource task{prepared.task_key, prepared.request.task().reference_source()};
  absl::StatusOr<std::vector<ExtensionRecord>> records = absl::UnknownError("no attempt");
  int attempt = 0;
  while (!flight->cancelled) {
    ++attempt;
    const absl::Time deadline = absl::Now() + options_.deadline;
    records = referee_->RecordExtensions(task, prepared.source, deadline);
    if (records.ok() || absl::IsInvalidArgument(records.status())) break;
    if (absl::IsFailedPrecondition(records.status())) break;
    LogWarning(absl::StrCat("recording extensions, attempt ", attempt, ": ", records.status().ToString()));
    if (attempt == options_.num_attempts_max) break;
    if (!absl::IsUnavailable(records.status())) continue;
    const absl::Status revived = ReviveToRecord(deadline);
    if (!revived.ok()) LogWarning(absl::StrCat("no referee to record with: ", revived.ToString()));
  }
  if (flight->cancelled) return Route::kDrop;
  if (absl::IsInvalidArgument(records.status())) {
    Conclude(v1::VERDICT_RUNTIME_ERROR, Escape(std::string(records.status().message()), 512), flight);
    return Route::kFinish;
  }
  const bool task_at_fault = absl::IsFailedPrecondition(records.status());
  if (!records.ok() && !task_at_fault) {
    if (surroundings.others_serve) return Route::kCompile;
    return GiveUp(records.status(), attempt, flight);
  }
  flight->queued_since = absl::Now();
  flight->extensions_recorded = true;
  if (records.ok()) flight->extensions = *std::move(records);
  return flight->extensions.empty() ? Route::kJudge : Route::kCompile;
}

absl::StatusOr<v1::Measurement> JudgeStage::Attempt(const JudgeRequest& request, bool alone) {
  if (alone) {
    absl::WriterMutexLock lock(&others_);
    return referee_->Judge(request, absl::Now() + options_.deadline);
  }
  absl::ReaderMutexLock lock(&others_);
  return referee_->Judge(request, absl::Now() + options_.deadline);
}

Route JudgeStage::Run(Flight* flight, LaneSurroundings surroundings) {
  v1::Cost* cost = flight->measurement.mutable_grade()->mutable_cost();
  cost->set_lane_wait_seconds(cost->lane_wait_seconds() +
                              absl::ToDoubleSeconds(absl::Now() - flight->queued_since));
  JudgeRequest request = RequestFor(*flight);
  request.another_follows = surroundings.another_follows;
  for (int attempt = 1; !flight->cancelled; ++attempt) {
    // Where a referee ended, any of those that it judged may be the cause: each is alone from then on.
    const bool is_alone = attempt > 1 || flight->passed_on;
    const int num_losses = num_losses_;
    const absl::StatusOr<v1::Measurement> measured = Attempt(request, is_alone);
    if (measured.ok()) {
      NoteSuccess(num_losses);
      AddMeasured(*measured, flight);
      Stamp(referee_->facts(), flight->measurement.mutable_grade()->mutable_environment());
      return Route::kFinish;
    }
    LogWarning(absl::StrCat("judging, attempt ", attempt, " of ", options_.num_attempts_max, ": ",
                            measured.status().ToString()));
    const bool is_last = attempt >= options_.num_attempts_max;
    // Without another lane the candidate is judged here, also where the referee has not started: it may as well when it
    // is asked to judge.
    const bool is_there = !is_last && ReviveReferee();
    if (!is_last && (is_there || !surroundings.others_serve)) continue;
    // A candidate that ends a lane which does not come back is tried on one other.
    if (is_last || flight->passed_on) return GiveUp(measured.status(), attempt, flight);
    flight->passed_on = true;
    return Route::kJudge;
  }
  return Route::kDrop;
}

JudgeRequest JudgeStage::RequestFor(const Flight& flight) const {
  JudgeRequest request;
  request.task = {flight.prepared->task_key, flight.prepared->request.task().reference_source()};
  request.limits = options_.limits;
  request.timing = options_.timing;
  request.with_blas = flight.prepared->with_blas;
  request.with_torch = flight.prepared->with_torch;
  request.with_streams = flight.prepared->with_streams;
  if (flight.prepared->is_native()) {
    request.kind = CandidateKind::kNative;
    request.library_fd = flight.library->get();
  } else {
    request.kind = CandidateKind::kKernelBenchPython;
    request.source = flight.prepared->source;
    for (const auto& library : flight.extension_libraries) request.extension_fds.push_back(library->get());
  }
  return request;
}

}  // namespace warpsmith
