#include "reward_service/server/reward_service.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/build_info.h"
#include "core/base/descriptor_limit.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signals.h"
#include "core/config/config_file.h"
#include "core/rpc/server.h"
#include "reward_service/compiler/compile_cache.h"
#include "reward_service/compiler/cuda_compiler.h"
#include "reward_service/compiler/extension_compiler.h"
#include "reward_service/compiler/triton/triton_compiler.h"
#include "reward_service/grading/environment.h"
#include "reward_service/grading/ledger.h"
#include "reward_service/grading/tenants.h"
#include "reward_service/measure/lane.h"
#include "reward_service/measure/reference_form.h"
#include "reward_service/sandbox/sandbox.h"
#include "reward_service/scoring/formulas.h"
#include "reward_service/server/door.h"
#include "reward_service/server/http_door.h"
#include "reward_service/server/http_error.h"
#include "reward_service/server/lanes.h"
#include "reward_service/server/llm_judge_setup.h"
#include "reward_service/server/options.h"
#include "reward_service/server/page_door.h"
#include "reward_service/server/reception.h"

namespace warpsmith {
namespace {

// That admitted requests have to end in when the service is told to stop.
constexpr absl::Duration kDrainTime = absl::Seconds(20);

// Of a body of HTTP, beside one longest answer as JSON writes it.
constexpr int64_t kListBytesMax = int64_t{4} << 20;

// All sections of a run, whoever reads them.
std::vector<std::string> KnownSections() {
  return {"run", "model", "data", "trainer", "rollout", "reward_service"};
}

// A fault of files that options name, with the key in front.
absl::Status At(const char* key, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("reward_service.", key, ": ", status.message()));
}

absl::StatusOr<ServiceOptions> LoadOptions(const RewardServiceFlags& flags) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ConfigFile> file,
                   ConfigFile::Load(flags.config, KnownSections(), flags.overrides));
  ASSIGN_OR_RETURN(ServiceOptions options, ReadServiceOptions(file->Section("reward_service")));
  if (!flags.address.empty()) options.address = flags.address;
  return options;
}

std::filesystem::path ShippedPrompt() { return ShareDirectory() / "llm_judge" / "llm_judge_prompt.txt"; }

// Everything that grades, in the order in which it is built; taken down in reverse.
struct Machinery {
  explicit Machinery(const ServiceOptions& options) : ledger(options.cache_bytes_max / 4) {}

  std::unique_ptr<Compiler> compiler;
  std::unique_ptr<CudaCompiler> cuda;          // null where there is no nvcc
  std::vector<std::string> gpu_architectures;  // that it compiles for
  std::vector<cuda::GpuFacts> gpus;            // of lanes that run
  std::string why_no_gpu;                      // where none does
  std::unique_ptr<ExtensionCompiler> extensions;
  std::unique_ptr<TritonCompiler> triton;  // null where there is no Triton, or no GPU
  std::unique_ptr<CompileCache> cache;
  std::unique_ptr<CompileStage> compile_stage;
  Ledger ledger;
  LlmJudgeMachinery llm_judge;
  std::unique_ptr<GradeJournal> journal;
  std::unique_ptr<Grader> grader;
  v1::Environment environment;
  int num_lanes = 0;
};

std::unique_ptr<CompileStage> MakeCompileStage(const Compiler* compiler, const CudaCompiler* cuda,
                                               const std::vector<std::string>& architectures,
                                               ExtensionCompiler* extensions, const TritonCompiler* triton,
                                               CompileCache* cache) {
  const auto native = [=](const PreparedRequest& prepared,
                          const std::atomic<bool>& cancelled) -> absl::StatusOr<CompiledProgram> {
    const std::string& source = prepared.source;
    if (prepared.request.candidate().language() == v1::CANDIDATE_LANGUAGE_CUDA) {
      if (cuda == nullptr) return absl::FailedPreconditionError("there is no CUDA compiler");
      const LinkedLibraries libraries = prepared.with_blas ? LinkedLibraries::kBlas : LinkedLibraries::kNone;
      return cache->GetOrCompile(cuda->Key(source, architectures, libraries), cancelled,
                                 [&] { return cuda->Compile(source, architectures, cancelled, libraries); });
    }
    const std::string key = CompileCache::Key(compiler->toolchain().fingerprint, source);
    return cache->GetOrCompile(key, cancelled, [&] { return compiler->Compile(source, cancelled); });
  };
  const auto extension = [=](const ExtensionRecord& record,
                             const std::atomic<bool>& cancelled) -> absl::StatusOr<CompiledProgram> {
    if (!record.kernels.empty()) {
      if (triton == nullptr) return absl::FailedPreconditionError("there is no Triton");
      return cache->GetOrCompile(triton->Key(record.kernels), cancelled,
                                 [&] { return triton->Compile(record.kernels, cancelled); });
    }
    const ExtensionArguments arguments{
        record.name,         record.cpp_sources,   record.cuda_sources,      record.functions,
        record.extra_cflags, record.extra_ldflags, record.extra_cuda_cflags, record.with_cuda};
    return cache->GetOrCompile(extensions->Key(arguments), cancelled,
                               [&] { return extensions->Compile(arguments, cancelled); });
  };
  return std::make_unique<CompileStage>(compiler->toolchain().version, RequestLimits().program_bytes_max,
                                        native, extension);
}

// Where Python.h lies; empty where there is no Python, and then no extension compiles.
std::filesystem::path PythonInclude() {
  absl::StatusOr<std::string> path = OutputOf(
      {GetBuildInfo().python, "-c", "import sysconfig; print(sysconfig.get_paths()['include'], end='')"});
  return path.ok() ? *path : "";
}

// A cached program holds a descriptor; half of them are for everything else.
constexpr int kCachedProgramsMax = 8192;
constexpr int kDescriptorsMin = 1024;  // those of sandboxes are numbered from 512

absl::StatusOr<int> CachedProgramsMax() {
  const int descriptors = RaiseDescriptorLimit();
  if (descriptors >= kDescriptorsMin) return std::min(descriptors / 2, kCachedProgramsMax);
  return absl::FailedPreconditionError(absl::StrCat("this process may open ", descriptors,
                                                    " files; the service needs ", kDescriptorsMin,
                                                    ": raise the hard limit (ulimit -Hn)"));
}

absl::StatusOr<CudaToolchain> FindCudaToolchain() {
  ASSIGN_OR_RETURN(const Toolchain host, ProbeToolchain());
  return ProbeCudaToolchain(host, GetBuildInfo().torch_dir);
}

// Null without a toolchain.
std::unique_ptr<CudaCompiler> MakeCudaCompiler(const ServiceOptions& options,
                                               absl::StatusOr<CudaToolchain> toolchain) {
  if (!toolchain.ok()) return nullptr;
  CudaCompilerOptions cuda{
      .stub_directory = ShareDirectory() / "facade" / "stubs",
      .withheld_directory = ShareDirectory() / "facade" / "withheld",
      .halves = HalvesPlaces{.program = ExecutableDirectory() / "warpsmith-nvrtc",
                             .header_directory = ShareDirectory() / "compiler" / "halves"}};
  cuda.limits.wall_seconds_max = static_cast<double>(options.compile_seconds_max);
  return std::make_unique<CudaCompiler>(*std::move(toolchain), std::move(cuda));
}

absl::StatusOr<std::unique_ptr<TritonCompiler>> FindTriton() {
  ASSIGN_OR_RETURN(TritonToolchain toolchain, ProbeTriton(GetBuildInfo().python));
  return TritonCompiler::Create(std::move(toolchain),
                                {.script = ShareDirectory() / "compiler" / "compile_triton.py"});
}

absl::Status BuildCompilers(const ServiceOptions& options, absl::StatusOr<CudaToolchain> cuda,
                            Machinery* machinery) {
  ASSIGN_OR_RETURN(machinery->compiler,
                   Compiler::Create(options.cache_directory / "preludes",
                                    {.wall_seconds_max = static_cast<double>(options.compile_seconds_max)}));
  machinery->cuda = MakeCudaCompiler(options, std::move(cuda));
  ASSIGN_OR_RETURN(const int num_programs_max, CachedProgramsMax());
  machinery->cache =
      std::make_unique<CompileCache>(CompileCacheOptions{.memory_bytes_max = options.cache_bytes_max / 2,
                                                         .num_programs_max = num_programs_max,
                                                         .directory = options.cache_directory / "compiled",
                                                         .directory_bytes_max = options.cache_bytes_max});
  ExtensionCompilerOptions extensions{.places = {.torch_dir = GetBuildInfo().torch_dir,
                                                 .python_include = PythonInclude(),
                                                 .facade_directory = ShareDirectory() / "facade"},
                                      .work_directory = options.cache_directory / "preludes"};
  if (machinery->cuda != nullptr && !machinery->gpu_architectures.empty()) {
    extensions.cuda = {machinery->cuda->toolchain(), machinery->gpu_architectures};
  }
  machinery->extensions =
      std::make_unique<ExtensionCompiler>(machinery->compiler->toolchain(), std::move(extensions));
  if (!machinery->gpu_architectures.empty()) {
    absl::StatusOr<std::unique_ptr<TritonCompiler>> triton = FindTriton();
    if (!triton.ok())
      LogWarning(absl::StrCat("programs have no Triton kernels here: ", triton.status().message()));
    if (triton.ok()) machinery->triton = *std::move(triton);
  }
  machinery->compile_stage =
      MakeCompileStage(machinery->compiler.get(), machinery->cuda.get(), machinery->gpu_architectures,
                       machinery->extensions.get(), machinery->triton.get(), machinery->cache.get());
  return absl::OkStatus();
}

// Without a journal the service grades as well, and forgets at its end.
void RecallGrades(const ServiceOptions& options, Machinery* machinery) {
  auto journal =
      GradeJournal::Open(options.cache_directory / "grades", options.cache_bytes_max / 2,
                         [&](GradeRecord record) { machinery->grader->Recall(std::move(record)); });
  if (journal.ok()) {
    machinery->journal = *std::move(journal);
  } else {
    LogWarning(
        absl::StrCat("grades are not kept on disk, a restart forgets them: ", journal.status().message()));
  }
}

void BuildGrader(const ServiceOptions& options, const CoreDivision& cores, std::vector<RunningLane> running,
                 Machinery* machinery) {
  const RefereeFacts& facts = running.back().referee->facts();  // of a lane on cores, which come last
  machinery->environment = MakeEnvironment(CoresText(cores.lane), machinery->compiler->toolchain().version,
                                           facts.torch_version, facts.torch_cpu_capability);
  if (machinery->triton != nullptr) machinery->environment.set_triton_version(machinery->triton->version());
  machinery->environment.set_llm_judge(machinery->llm_judge.name);
  machinery->num_lanes = static_cast<int>(running.size());
  std::vector<std::unique_ptr<JudgeStage>> lanes;
  for (RunningLane& lane : running) {
    JudgeStageOptions stage{.limits = options.judge, .timing = options.timing};
    // Seven constructors may take so long each: two of an oracle, three of references, two of a candidate's processes.
    stage.deadline += 7 * absl::Seconds(options.judge.lane_seconds_max);
    if (lane.on_gpu) {
      stage.device = v1::DEVICE_CUDA;
      stage.num_at_once = kJudgedAtOnceOnGpu;
      // Each may have it alone for forms of its reference, and twice for its candidate, after others are verified.
      const double turns = 2 * (options.judge.lane_seconds_max + kBesideOthersSecondsMax);
      stage.deadline += kJudgedAtOnceOnGpu * (FormsTimeMax(options.timing.baselines) + absl::Seconds(turns));
      machinery->gpus.push_back(lane.referee->facts().gpu.value_or(cuda::GpuFacts()));
    }
    // All of its cores for all of its time; beside a GPU programs have one.
    const double num_cores = lane.on_gpu ? 1 : static_cast<double>(lane.cores.size());
    stage.limits.cpu_seconds_max = num_cores * options.judge.lane_seconds_max;
    lanes.push_back(std::make_unique<JudgeStage>(stage, std::move(lane.referee), std::move(lane.lease)));
  }
  // All cores where a judge takes its own from compilers at any moment: they have what it leaves.
  const int num_workers =
      options.num_compile_workers > 0 ? options.num_compile_workers : static_cast<int>(AllowedCores().size());
  const auto observe = [ledger = &machinery->ledger](const auto& prepared, const v1::Grade& grade) {
    ledger->Record(prepared, grade);
  };
  const auto keep = [machinery](const GradeRecord& record) {
    if (machinery->journal != nullptr) machinery->journal->Append(record);
  };
  machinery->grader =
      std::make_unique<Grader>(GraderOptions{.num_compile_workers = num_workers,
                                             .queue_capacity = options.queue_capacity,
                                             .cache_bytes_max = options.cache_bytes_max / 2,
                                             .environment = machinery->environment,
                                             .observer = observe,
                                             .keep = keep,
                                             .llm_stage = machinery->llm_judge.stage.get(),
                                             .num_llm_requests = options.llm_judge.max_concurrent},
                               machinery->compile_stage.get(), std::move(lanes));
  RecallGrades(options, machinery);
}

absl::StatusOr<std::unique_ptr<Machinery>> Build(const ServiceOptions& options, const CoreDivision& cores) {
  auto machinery = std::make_unique<Machinery>(options);
  ASSIGN_OR_RETURN(machinery->llm_judge,
                   SetUpLlmJudge(options.llm_judge, ShippedPrompt(), &machinery->ledger.metrics()));
  RETURN_IF_ERROR(CheckSandbox());
  absl::StatusOr<CudaToolchain> cuda = FindCudaToolchain();
  UsableGpus usable = FindUsableGpus(options.gpus, cuda.status());
  RETURN_IF_ERROR(CheckGpusRequired(options.gpus, usable));
  machinery->why_no_gpu =
      usable.gpus.empty() ? std::move(usable.why_none) : "no referee starts on its GPUs: its log says why";
  machinery->gpu_architectures = ArchitecturesOf(usable.gpus);
  ASSIGN_OR_RETURN(const std::vector<LanePlan> plans, PlanLanes(cores.lane, options.num_lanes, usable.gpus));
  // Warming referees and precompiling headers take seconds each, and neither needs the other.
  absl::StatusOr<std::vector<RunningLane>> lanes = absl::UnknownError("not started");
  std::thread warming([&] { lanes = StartLanes(plans); });
  const absl::Status compilers = BuildCompilers(options, std::move(cuda), machinery.get());
  warming.join();
  RETURN_IF_ERROR(compilers);
  RETURN_IF_ERROR(lanes.status());
  BuildGrader(options, cores, *std::move(lanes), machinery.get());
  RETURN_IF_ERROR(CheckGpusRequired(options.gpus, {machinery->gpus, machinery->why_no_gpu}));
  return machinery;
}

// What there are lanes for, and what a measurement there depends on beside the program.
std::map<v1::Device, std::string> DevicesOf(const Machinery& machinery) {
  const std::string host =
      absl::StrCat(machinery.environment.SerializeAsString(), machinery.compiler->toolchain().fingerprint);
  std::map<v1::Device, std::string> devices = {{v1::DEVICE_CPU, host}};
  if (machinery.gpus.empty()) return devices;
  std::string& gpus = devices[v1::DEVICE_CUDA];
  gpus = absl::StrCat(host, machinery.cuda->toolchain().fingerprint);
  for (const cuda::GpuFacts& gpu : machinery.gpus)
    absl::StrAppend(&gpus, "\n", gpu.name, " ", gpu.driver_version);
  return devices;
}

ReceptionOptions MakeReceptionOptions(const ServiceOptions& options, const Machinery& machinery) {
  ReceptionOptions reception;
  reception.abilities.devices = DevicesOf(machinery);
  reception.abilities.why_no_gpu = machinery.why_no_gpu;
  v1::Capabilities& capabilities = reception.capabilities;
  for (const auto language : GradedLanguages(reception.abilities)) capabilities.add_languages(language);
  for (const auto& [device, environment] : reception.abilities.devices) capabilities.add_devices(device);
  for (const std::string_view formula : FormulaNames()) capabilities.add_formulas(std::string(formula));
  capabilities.set_default_formula(options.default_formula);
  capabilities.set_num_lanes(machinery.num_lanes);
  capabilities.set_queue_capacity(options.queue_capacity);
  capabilities.set_answer_bytes_max(reception.abilities.limits.answer_bytes_max);
  *capabilities.mutable_environment() = machinery.environment;
  capabilities.set_service_version(machinery.environment.service_version());
  return reception;
}

// Null where no address is given.
absl::StatusOr<std::unique_ptr<HttpServer>> StartHttp(const ServiceOptions& options, const TlsIdentity& tls,
                                                      const HttpDoor* door) {
  if (options.http_address.empty()) return std::unique_ptr<HttpServer>();
  ASSIGN_OR_RETURN(
      std::unique_ptr<HttpServer> server,
      HttpServer::Start({.address = options.http_address,
                         .address_key = "reward_service.http_address",
                         .tls = tls,
                         .body_bytes_max = kListBytesMax + 2 * RequestLimits().answer_bytes_max,
                         .refusal = RefusalResponse},
                        [door](const std::shared_ptr<HttpExchange>& exchange) { door->Handle(exchange); }));
  std::cout << "HTTP on " << server->address() << std::endl;
  return server;
}

}  // namespace

absl::StatusOr<std::string> CheckRewardService(const RewardServiceFlags& flags) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ConfigFile> file,
                   ConfigFile::Load(flags.config, KnownSections(), flags.overrides));
  const absl::StatusOr<ServiceOptions> options = ReadServiceOptions(file->Section("reward_service"));
  CheckFormulaAskedFor(file->Section("trainer")).IgnoreError();  // Finish() returns it with the others
  RETURN_IF_ERROR(file->Finish());
  RETURN_IF_ERROR(At("tls", ReadTls(options->tls).status()));
  RETURN_IF_ERROR(At("tenants", Tenants::Load(options->tenants, options->queue_capacity).status()));
  RETURN_IF_ERROR(At("lane_cores", DivideCores(AllowedCores(), options->lane_cores).status()));
  Metrics metrics;
  RETURN_IF_ERROR(SetUpLlmJudge(options->llm_judge, ShippedPrompt(), &metrics).status());
  return file->ResolvedYaml({"reward_service"});
}

std::string RewardServiceReference() {
  const std::unique_ptr<ConfigFile> nothing =
      ConfigFile::Parse("reward_service: {tenants: {NAME: {}}}", "", KnownSections()).value();
  ReadServiceOptions(nothing->Section("reward_service")).IgnoreError();
  return nothing->Reference({"reward_service"});
}

absl::Status RunRewardService(const RewardServiceFlags& flags) {
  const sigset_t stop_signals = BlockStopSignals();
  ASSIGN_OR_RETURN(const ServiceOptions options, LoadOptions(flags));
  ASSIGN_OR_RETURN(const TlsIdentity tls, ReadTls(options.tls));
  ASSIGN_OR_RETURN(Tenants tenants, Tenants::Load(options.tenants, options.queue_capacity));
  ASSIGN_OR_RETURN(PageFiles page, ReadPageFiles(ShareDirectory() / "page"));
  ASSIGN_OR_RETURN(const CoreDivision cores, DivideCores(AllowedCores(), options.lane_cores));
  const bool compile_anywhere = Lane::CheckRealtime().ok();
  if (!compile_anywhere) RETURN_IF_ERROR(PinTo(cores.others));
  ASSIGN_OR_RETURN(const std::unique_ptr<Machinery> machinery, Build(options, cores));
  const ReceptionOptions reception_options = MakeReceptionOptions(options, *machinery);
  const Reception reception(reception_options, std::move(tenants), machinery->grader.get(),
                            &machinery->ledger);
  RewardDoor door(&reception);
  const std::string name = v1::RewardService::service_full_name();
  ASSIGN_OR_RETURN(
      const std::unique_ptr<RpcServer> server,
      RpcServer::Start(
          {.address = options.address, .address_key = "reward_service.address or --address", .tls = tls},
          {{.name = name, .service = &door}}));
  server->SetServing(name, Serving::kYes);
  server->SetServing("", Serving::kYes);
  const HttpDoor http_door(&reception, std::move(page));
  ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> http_server, StartHttp(options, tls, &http_door));
  std::cout << "listening on " << server->address() << std::endl;
  LogInfo(absl::StrCat("grades ", GradedText(reception_options.abilities), "; ",
                       GpusText({machinery->gpus, machinery->why_no_gpu}), "; lane cores ",
                       CoresText(cores.lane), ", compilers on ",
                       CoresText(compile_anywhere ? AllowedCores() : cores.others)));
  const int signal = AwaitStopSignal(stop_signals);
  LogInfo(
      absl::StrCat("signal ", signal, ": draining ", machinery->grader->backlog().num_requests, " requests"));
  server->SetServing(name, Serving::kNo);
  machinery->grader->Drain(kDrainTime);
  server->Shutdown(absl::Seconds(2));
  return absl::OkStatus();
}

}  // namespace warpsmith
