#include "trainer/phases/training.h"

#include <ATen/Parallel.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/kernels/memory_checksum.h"
#include "nlohmann/json.hpp"
#include "trainer/data/seeds.h"
#include "trainer/evaluation/evaluation_table.h"
#include "trainer/phases/cold_start.h"
#include "trainer/phases/grpo.h"
#include "trainer/phases/policy_start.h"
#include "trainer/phases/rank_settings.h"
#include "trainer/phases/run_leader.h"
#include "trainer/phases/run_start.h"
#include "trainer/run_folder/export.h"
#include "trainer/run_folder/source_model.h"
#include "trainer/update/agreement.h"

namespace warpsmith {
namespace {

// 16 hexadecimal digits.
std::string DrawRunId() {
  std::random_device random;
  return absl::StrFormat("%08x%08x", random(), random());
}

using nlohmann::ordered_json;

// What a run ends with, on standard output: its log is on standard error.
void Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

bool Trains(RunMode mode) { return mode == RunMode::kTrain || mode == RunMode::kColdStart; }

// One run on one rank. Members are what the phases share.
class Training {
 public:
  Training(const Configuration& configuration, const TrainingOptions& options, ControlPlane& control,
           Communicator& communicator, Prompts prompts, SourceModel source, BegunRun begun,
           std::unique_ptr<TrainingGpu> gpu, std::unique_ptr<ModelTrainer> policy, ThreadPool* pool,
           const std::atomic<bool>& stop);

  absl::Status Run();

 private:
  absl::Status Restore(const std::filesystem::path& checkpoint);
  absl::Status Prepare();
  absl::Status CompareWeights();
  bool TrainsSft() const;
  absl::Status LoadSftPairs();
  absl::Status OpenLog();
  absl::Status Train();
  absl::Status ColdStartPhase();
  absl::Status EvaluateBefore();
  absl::Status GrpoPhase();
  absl::Status EvaluateAfter();
  absl::Status EvaluateOnly();
  absl::Status Export();
  absl::Status WriteSummary(const ordered_json& after);

  std::filesystem::path Directory() const { return configuration_.run.directory; }
  std::string DeviceName() const { return gpu_ == nullptr ? "cpu" : gpu_->name(); }

  const Configuration& configuration_;
  const TrainingOptions& options_;
  const Prompts prompts_;
  const SourceModel source_;  // empty but on rank 0, which exports
  BegunRun begun_;
  const std::unique_ptr<TrainingGpu> gpu_;  // null: the CPU computes
  const std::unique_ptr<ModelTrainer> policy_;
  ThreadPool& pool_;
  CheckpointStore checkpoints_;
  RunProgress progress_;
  // Holds what SFT learns from and is judged by; until ColdStartPhase takes it, where TrainsSft().
  std::optional<ColdStartData> sft_data_;
  std::vector<TrainingSequence> sft_validation_;
  std::unique_ptr<RunLog> log_;
  RunContext context_;
  std::unique_ptr<RunLeader> leader_;  // null but on rank 0
};

Training::Training(const Configuration& configuration, const TrainingOptions& options, ControlPlane& control,
                   Communicator& communicator, Prompts prompts, SourceModel source, BegunRun begun,
                   std::unique_ptr<TrainingGpu> gpu, std::unique_ptr<ModelTrainer> policy, ThreadPool* pool,
                   const std::atomic<bool>& stop)
    : configuration_(configuration),
      options_(options),
      prompts_(std::move(prompts)),
      source_(std::move(source)),
      begun_(std::move(begun)),
      gpu_(std::move(gpu)),
      policy_(std::move(policy)),
      pool_(*pool),
      checkpoints_(configuration.run.directory / "checkpoints", configuration.trainer.checkpoints_kept,
                   begun_.identity),
      context_{.configuration = configuration_,
               .prompts = prompts_,
               .control = control,
               .communicator = communicator,
               .checkpoints = checkpoints_,
               .policy = *policy_,
               .progress = progress_,
               .gpu = gpu_.get(),
               .stop = &stop,
               .start = absl::Now()} {}

absl::Status Training::Run() {
  RETURN_IF_ERROR(ShareStatus(context_.control, Prepare()));
  RETURN_IF_ERROR(CompareWeights());
  if (options_.mode == RunMode::kExport) return context_.leader() ? Export() : absl::OkStatus();
  if (options_.mode == RunMode::kColdStart && progress_.cold_start.finished) {
    if (context_.leader()) LogInfo("SFT has finished already; nothing to do");
    return absl::OkStatus();
  }
  if (context_.leader() && options_.mode != RunMode::kColdStart) {
    context_.control.Say("waiting for the rollout workers");
    ASSIGN_OR_RETURN(leader_, RunLeader::Create(&context_, options_.rollout_addresses));
  }
  if (context_.leader() && options_.mode == RunMode::kTrain) {
    RETURN_IF_ERROR(SettleFormula(leader_->formulas(), begun_));
    checkpoints_.set_identity(begun_.identity);
  }
  // The first thing that changes the folder, once all that may fail before it has not.
  RETURN_IF_ERROR(OpenLog());
  if (options_.mode == RunMode::kEvaluate) return context_.leader() ? EvaluateOnly() : absl::OkStatus();
  return Train();
}

absl::Status Training::Train() {
  RETURN_IF_ERROR(ColdStartPhase());
  if (options_.mode == RunMode::kColdStart) return absl::OkStatus();
  RETURN_IF_ERROR(EvaluateBefore());
  RETURN_IF_ERROR(GrpoPhase());
  RETURN_IF_ERROR(EvaluateAfter());
  return context_.control.Barrier("end");
}

// All that this rank reads before anything is changed.
absl::Status Training::Prepare() {
  RETURN_IF_ERROR(begun_.checkpoint.has_value() ? Restore(*begun_.checkpoint)
                                                : InitialiseWeights(configuration_.model, *policy_));
  // An evaluation alone measures anew, however often it is asked for.
  if (progress_.run_id.empty() || options_.mode == RunMode::kEvaluate) progress_.run_id = DrawRunId();
  if (Trains(options_.mode)) progress_.device = DeviceName();
  return TrainsSft() ? LoadSftPairs() : absl::OkStatus();
}

// Every rank starts from the same weights, wherever it read them.
absl::Status Training::CompareWeights() {
  if (context_.control.size() == 1) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Parameters present, policy_->HostWeights());
  const std::vector<ParameterBuffer>& buffers = present.layout().buffers();
  std::vector<std::string> checksums(buffers.size());
  pool_.Run(std::ssize(buffers), [&](int64_t i, int) {
    checksums[i] = ToHex(ChecksumOf(present.BufferBytes(static_cast<int>(i))));
  });
  const std::string source = configuration_.model.path.empty() || begun_.checkpoint.has_value()
                                 ? "weights"
                                 : "model.path: the checksum of the weights";
  RankSettings weights;
  for (size_t i = 0; i < buffers.size(); ++i) {
    weights[absl::StrCat(source, " \"", buffers[i].name, "\"")] = checksums[i];
  }
  return CompareOverRanks(context_.control, weights);
}

absl::Status Training::Restore(const std::filesystem::path& checkpoint) {
  ASSIGN_OR_RETURN(LoadedProgress loaded, LoadProgress(checkpoint));
  progress_ = std::move(loaded.progress);
  RETURN_IF_ERROR(LoadTraining(checkpoint, loaded.num_optimiser_steps, *policy_));
  const bool needs_reference = options_.mode == RunMode::kTrain && configuration_.grpo.loss.kl_weight > 0;
  if (needs_reference && progress_.cold_start.finished) {
    RETURN_IF_ERROR(policy_->KeepReference());
    // Before the first update these are the weights after SFT.
    if (progress_.policy_version > 0) RETURN_IF_ERROR(LoadState(checkpoint, StateSet::kReference, *policy_));
  }
  context_.wall_seconds_before = progress_.wall_seconds;
  if (context_.leader()) LogInfo(absl::StrCat("goes on from ", checkpoint.string()));
  const bool moves = Trains(options_.mode) && !progress_.device.empty() && progress_.device != DeviceName();
  if (context_.leader() && moves) {
    LogWarning(absl::StrCat("the checkpoint is of passes on ", progress_.device, ", the run goes on on ",
                            DeviceName(), ": its bits differ from those of a run on one device"));
  }
  return absl::OkStatus();
}

bool Training::TrainsSft() const {
  const ColdStartSection& options = configuration_.cold_start;
  return Trains(options_.mode) && !progress_.cold_start.finished && !configuration_.data.cold_start.empty() &&
         (options.seconds > 0 || options.tokens > 0);
}

absl::Status Training::LoadSftPairs() {
  const int64_t tokens_max = configuration_.model.config.max_position_embeddings;
  ASSIGN_OR_RETURN(std::vector<ColdStartPair> pairs, LoadColdStartPairs(configuration_.data.cold_start));
  ASSIGN_OR_RETURN(sft_data_,
                   ColdStartData::Create(std::move(pairs), &prompts_, tokens_max,
                                         DeriveSeed(configuration_.run.seed, SeedPurpose::kColdStartOrder)));
  constexpr char kValidation[] = "data.cold_start_validation";
  ASSIGN_OR_RETURN(const std::vector<ColdStartPair> held_back,
                   LoadColdStartPairs(configuration_.data.cold_start_validation));
  ASSIGN_OR_RETURN(sft_validation_, TokenisePairsThatFit(held_back, prompts_, tokens_max, kValidation));
  if (gpu_ != nullptr) {
    RETURN_IF_ERROR(CheckSequence(configuration_, *gpu_, sft_data_->longest(), /*adds_reference=*/false,
                                  "data.cold_start"));
  }
  if (!context_.leader()) return absl::OkStatus();
  for (const std::string& left_out :
       {LeftOutText(sft_data_->num_left_out(), sft_data_->num_pairs(), tokens_max, "data.cold_start"),
        LeftOutText(held_back.size() - sft_validation_.size(), held_back.size(), tokens_max, kValidation)}) {
    if (!left_out.empty()) LogWarning(left_out);
  }
  return absl::OkStatus();
}

// An evaluation alone keeps its records apart: those of the run go on from its checkpoint.
absl::Status Training::OpenLog() {
  if (!context_.leader()) return absl::OkStatus();
  const bool apart = options_.mode == RunMode::kEvaluate;
  const std::filesystem::path directory = apart ? Directory() / "evaluation" : Directory();
  if (begun_.start == RunStart::kOverwrite) RETURN_IF_ERROR(RemoveRun(directory));
  // Before any record: records without this folder are of a run that has lost its checkpoints.
  const std::filesystem::path first = apart ? directory : directory / "checkpoints";
  std::error_code error;
  std::filesystem::create_directories(first, error);
  if (error) return absl::InternalError(absl::StrCat("cannot make ", first.string(), ": ", error.message()));
  RETURN_IF_ERROR(WriteFileAtomically(directory / "config.yaml", configuration_.resolved_yaml));
  ASSIGN_OR_RETURN(log_, RunLog::Open(directory, apart ? RunProgress() : progress_));
  context_.log = log_.get();
  return absl::OkStatus();
}

absl::Status Training::ColdStartPhase() {
  if (progress_.cold_start.finished) return absl::OkStatus();
  if (begun_.checkpoint.has_value()) RETURN_IF_ERROR(KeepOlderBest(context_, *begun_.checkpoint));
  if (TrainsSft()) {
    ColdStart cold_start(&context_, &*sft_data_, std::move(sft_validation_));
    RETURN_IF_ERROR(cold_start.Run());
    sft_data_.reset();
  } else if (progress_.cold_start.step > 0 && begun_.checkpoint.has_value()) {
    // Both limits are 0 now: SFT ends here, with its best weights as always.
    RETURN_IF_ERROR(TakeBestWeights(context_));
  }
  progress_.cold_start.finished = true;
  RETURN_IF_ERROR(policy_->ResetOptimiser());
  if (configuration_.grpo.loss.kl_weight > 0) RETURN_IF_ERROR(policy_->KeepReference());
  return SaveCheckpoint(context_);
}

absl::Status Training::EvaluateBefore() {
  if (context_.leader()) RETURN_IF_ERROR(leader_->Publish());
  ASSIGN_OR_RETURN(const bool done, Agree(context_, !progress_.evaluation_before.empty()));
  if (done) return absl::OkStatus();
  if (context_.leader()) {
    context_.control.Say("evaluating before GRPO");
    ASSIGN_OR_RETURN(const ordered_json before, leader_->Evaluate("before"));
    progress_.evaluation_before = before.dump();
  }
  return SaveCheckpoint(context_);
}

absl::Status Training::GrpoPhase() {
  if (!context_.leader()) return RunGrpo(context_, nullptr);
  GrpoLeader leader{.collector = &leader_->collector(),
                    .publish = [&] { return leader_->Publish(); },
                    .evaluate = [&](const std::string& name) { return leader_->Evaluate(name).status(); }};
  return RunGrpo(context_, &leader);
}

absl::Status Training::EvaluateAfter() {
  if (!context_.leader()) return absl::OkStatus();
  context_.control.Say("evaluating after GRPO");
  ASSIGN_OR_RETURN(const ordered_json after, leader_->Evaluate("after"));
  RETURN_IF_ERROR(Export());
  RETURN_IF_ERROR(WriteSummary(after));
  const ordered_json before = ordered_json::parse(progress_.evaluation_before);
  const std::string directory = Directory().string();
  Print(absl::StrCat("\n", EvaluationTable({{"before", &before}, {"after", &after}}),
                     "\nsummary: ", directory, "/summary.json\nexport:  ", directory,
                     "/export\nreport:  python3 -m cli.report ", directory, " (in the source tree) writes ",
                     directory, "/report.html\n"));
  return absl::OkStatus();
}

absl::Status Training::EvaluateOnly() {
  RETURN_IF_ERROR(leader_->Publish());
  ASSIGN_OR_RETURN(const ordered_json evaluation, leader_->Evaluate("evaluation"));
  const std::filesystem::path path = Directory() / "evaluation" / "evaluation.json";
  RETURN_IF_ERROR(WriteFileAtomically(path, evaluation.dump(2) + "\n"));
  const std::string column = absl::StrCat("after step ", progress_.grpo.step);
  Print(absl::StrCat("\n", EvaluationTable({{column, &evaluation}}), "\nevaluation: ", path.string(), "\n"));
  return absl::OkStatus();
}

absl::Status Training::Export() {
  const std::filesystem::path directory = Directory() / "export";
  ASSIGN_OR_RETURN(const Parameters weights, policy_->HostWeights());
  RETURN_IF_ERROR(ExportHuggingFace(weights, prompts_, source_, configuration_.data.prompts,
                                    configuration_.grpo.sampling, directory));
  LogInfo(absl::StrCat("exported to ", directory.string()));
  return absl::OkStatus();
}

absl::Status Training::WriteSummary(const ordered_json& after) {
  const ordered_json summary = {{"name", configuration_.run.name},
                                {"seed", configuration_.run.seed},
                                {"steps", progress_.grpo.step},
                                {"wall_seconds", WallSeconds(context_)},
                                {"before", ordered_json::parse(progress_.evaluation_before)},
                                {"after", after},
                                {"cold_start",
                                 {{"steps", progress_.cold_start.step},
                                  {"tokens", progress_.cold_start.num_tokens},
                                  {"seconds", progress_.cold_start.seconds},
                                  {"best_validation_loss", progress_.cold_start.best_loss}}},
                                {"policy_version", progress_.policy_version},
                                {"num_parameters", CountParameters(configuration_.model.config)},
                                {"prompts_sha256", prompts_.sha256()},
                                {"export_dir", (Directory() / "export").string()}};
  return WriteFileAtomically(Directory() / "summary.json", summary.dump(2) + "\n");
}

}  // namespace

absl::Status RunTraining(const Configuration& configuration, const TrainingOptions& asked,
                         ControlPlane& control, Communicator& communicator, const std::atomic<bool>& stop) {
  // The work is done by the pool's threads; ATen's own would spin beside them.
  at::set_num_threads(1);
  ASSIGN_OR_RETURN(Prompts prompts, Prompts::Load(configuration.data.tokenizer, configuration.data.prompts,
                                                  configuration.model.path));
  if (prompts.tokenizer().vocab_size() > configuration.model.config.vocab_size) {
    return absl::InvalidArgumentError(absl::StrCat("the tokenizer has ", prompts.tokenizer().vocab_size(),
                                                   " tokens and model.vocab_size is ",
                                                   configuration.model.config.vocab_size));
  }
  if (control.size() > 1) {
    RETURN_IF_ERROR(CompareOverRanks(control, SettingsOf(configuration, asked, prompts)));
  }
  SourceModel source;
  if (control.rank() == 0) {
    ASSIGN_OR_RETURN(source, ReadSourceModel(configuration.model.path, configuration.model.config));
  }
  // A launcher that was replaced counts from 0: what any rank knows of earlier attempts holds for all.
  TrainingOptions options = asked;
  ASSIGN_OR_RETURN(options.request.restart_count, LargestOverRanks(control, asked.request.restart_count));
  ASSIGN_OR_RETURN(options.request.restarts_max, LargestOverRanks(control, asked.request.restarts_max));
  std::unique_ptr<TrainingGpu> gpu;
  if (Trains(options.mode)) {
    ASSIGN_OR_RETURN(gpu, TrainingGpu::Open(configuration.trainer.gpu, control.size()));
  }
  if (gpu != nullptr) RETURN_IF_ERROR(CheckMemory(configuration, *gpu));
  ASSIGN_OR_RETURN(BegunRun begun, BeginRun(configuration, options, prompts.sha256(), control));
  if (options.dry_run) return absl::OkStatus();
  ThreadPool pool(configuration.trainer.num_threads);
  ASSIGN_OR_RETURN(std::unique_ptr<ModelTrainer> policy,
                   MakePolicy(configuration, prompts.tokenizer().vocab_size(), gpu.get(), &pool));
  Training training(configuration, options, control, communicator, std::move(prompts), std::move(source),
                    std::move(begun), std::move(gpu), std::move(policy), &pool, stop);
  return training.Run();
}

}  // namespace warpsmith
