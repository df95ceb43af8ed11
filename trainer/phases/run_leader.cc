#include "trainer/phases/run_leader.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "core/base/host_id.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/model/model_fields.h"
#include "nlohmann/json.hpp"
#include "trainer/data/task_source.h"
#include "trainer/phases/policy_start.h"
#include "trainer/run_folder/progress_line.h"

namespace warpsmith {
namespace {

absl::StatusOr<std::vector<Task>> LoadOptionalTasks(const std::filesystem::path& path,
                                                    const std::string& language) {
  if (path.empty()) return std::vector<Task>();
  return LoadTasks(path, language);
}

absl::StatusOr<std::vector<Task>> LoadTrainingOptimiseTasks(const Configuration& configuration) {
  const DataSection& data = configuration.data;
  if (data.optimise.empty()) return std::vector<Task>();
  if (configuration.grpo.optimise_share == 0) {
    LogWarning("data.optimise is not used: trainer.grpo.optimise_share is 0");
  }
  return LoadOptimiseTasks(data.optimise, data.language);
}

std::vector<std::string> DevicesOf(std::initializer_list<const std::vector<Task>*> lists) {
  std::set<std::string> devices;
  for (const std::vector<Task>* tasks : lists) {
    for (const Task& task : *tasks) devices.insert(task.device);
  }
  devices.erase("");
  return {devices.begin(), devices.end()};
}

// Memory where there is such a folder: weights are written and read once a step.
std::filesystem::path PublishDirectory(const Configuration& configuration) {
  if (!configuration.trainer.publish_directory.empty()) return configuration.trainer.publish_directory;
  const std::filesystem::path memory = "/dev/shm";
  std::error_code ignored;
  return std::filesystem::is_directory(memory, ignored) ? memory : configuration.run.directory;
}

// Ids that only pad the model's head are no tokens.
TransitionLimits LimitsOf(const RunContext& context) {
  return {.vocab_size = context.prompts.tokenizer().vocab_size(),
          .positions_max = context.configuration.model.config.max_position_embeddings};
}

std::vector<NamedScalar> MainFigures(const SplitEvaluation& split) {
  return {{"held_out_compile_rate", split.sampled.compile_rate.value},
          {"held_out_correct_rate", split.sampled.correct_rate.value},
          {"held_out_fast_1", split.sampled.fast_1.value},
          {"held_out_geomean_speedup", split.sampled.geomean_speedup.value},
          {"held_out_mean_reward", split.sampled.mean_reward.value},
          {"held_out_hack_rate", split.sampled.hack_rate.value},
          {"held_out_greedy_mean_reward", split.greedy.mean_reward.value}};
}

std::string FiguresText(const EvaluationStatistics& statistics) {
  if (statistics.num_answers == statistics.num_unscored) return "no scored completion";
  return absl::StrFormat("reward %.3f, correct %.2f, fast_1 %.2f", statistics.mean_reward.value,
                         statistics.correct_rate.value, statistics.fast_1.value);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunLeader>> RunLeader::Create(
    RunContext* context, const std::vector<std::string>& rollout_addresses) {
  const DataSection& data = context->configuration.data;
  Tasks tasks;
  ASSIGN_OR_RETURN(tasks.train, LoadTasks(data.train, data.language));
  ASSIGN_OR_RETURN(tasks.optimise, LoadTrainingOptimiseTasks(context->configuration));
  ASSIGN_OR_RETURN(tasks.held_out, LoadTasks(data.held_out, data.language));
  ASSIGN_OR_RETURN(tasks.unseen_operator, LoadOptionalTasks(data.unseen_operator, data.language));
  if (rollout_addresses.empty()) {
    return absl::InvalidArgumentError(
        "no rollout worker: give --rollout-address, or trainer.rollout_addresses in the configuration");
  }
  std::unique_ptr<RunLeader> leader(new RunLeader(context, rollout_addresses, tasks));
  RETURN_IF_ERROR(leader->Connect());
  RETURN_IF_ERROR(leader->TakeTasks(std::move(tasks)));
  return leader;
}

RunLeader::RunLeader(RunContext* context, const std::vector<std::string>& rollout_addresses,
                     const Tasks& tasks)
    : context_(*context),
      devices_(DevicesOf({&tasks.train, &tasks.optimise, &tasks.held_out, &tasks.unseen_operator})),
      client_({.addresses = rollout_addresses,
               .limits = LimitsOf(*context),
               .wait = {.timeout = absl::Seconds(context->configuration.trainer.rollout_wait_seconds),
                        .stop = context->stop},
               .formula = context->configuration.grpo.formula,
               .language = context->configuration.data.language,
               .devices = devices_,
               .run_id = context->progress.run_id}),
      publisher_(PublishDirectory(context->configuration), context->configuration.run.directory),
      context_tokens_max_(context->configuration.model.config.max_position_embeddings) {}

absl::Status RunLeader::Connect() {
  const absl::StatusOr<std::vector<WorkerIdentity>> workers = client_.Connect();
  if (absl::IsInvalidArgument(workers.status())) {
    return absl::InvalidArgumentError(absl::StrCat("trainer.grpo.formula: ", workers.status().message()));
  }
  if (absl::IsFailedPrecondition(workers.status())) {
    return absl::FailedPreconditionError(absl::StrCat(NeedsText(), ": ", workers.status().message()));
  }
  RETURN_IF_ERROR(workers.status());
  const auto all_compute_in = [&workers](std::string_view dtype) {
    return std::all_of(workers->begin(), workers->end(),
                       [dtype](const WorkerIdentity& worker) { return worker.weights_dtype == dtype; });
  };
  // They would round the weights themselves.
  published_dtype_ = all_compute_in("bfloat16")  ? PublishedDtype::kBfloat16
                     : all_compute_in("float16") ? PublishedDtype::kFloat16
                                                 : PublishedDtype::kAsTrained;
  const std::string host = HostId();
  offers_ = context_.policy.can_offer() && all_compute_in("bfloat16") && !host.empty() &&
            std::all_of(workers->begin(), workers->end(),
                        [&host](const WorkerIdentity& worker) { return worker.cuda_memory_host == host; });
  const WorkerIdentity own = {.layout_sha256 = context_.policy.layout().Sha256(),
                              .prompts_sha256 = context_.prompts.sha256(),
                              .model_fields = FieldsOf(context_.configuration.model.config),
                              .stop_token_ids = context_.prompts.stop_token_ids()};
  for (const WorkerIdentity& worker : *workers) {
    if (worker.context_tokens_max > 0) {
      context_tokens_max_ = std::min(context_tokens_max_, worker.context_tokens_max);
    }
    formulas_.insert(worker.formula);
    RETURN_IF_ERROR(CheckAgrees(worker, own));
  }
  return absl::OkStatus();
}

absl::Status RunLeader::TakeTasks(Tasks tasks) {
  const Configuration& configuration = context_.configuration;
  if (context_.gpu != nullptr) {
    const bool adds_reference = configuration.grpo.loss.kl_weight > 0 && !context_.policy.has_reference();
    RETURN_IF_ERROR(CheckSequence(configuration, *context_.gpu, context_tokens_max_, adds_reference,
                                  "GRPO, a worker's whole context (rollout.context_tokens_max),"));
  }
  room_.emplace(&context_.prompts, context_tokens_max_ - configuration.grpo.sampling.answer_tokens_max);
  ASSIGN_OR_RETURN(tasks.train, room_->Keep(std::move(tasks.train), "data.train"));
  ASSIGN_OR_RETURN(tasks.optimise, room_->Keep(std::move(tasks.optimise), "data.optimise"));
  ASSIGN_OR_RETURN(held_out_, room_->Keep(std::move(tasks.held_out), "data.held_out"));
  ASSIGN_OR_RETURN(unseen_operator_, room_->Keep(std::move(tasks.unseen_operator), "data.unseen_operator"));
  collector_ = std::make_unique<GroupCollector>(std::move(tasks.train), configuration.grpo,
                                                configuration.run.seed, &client_, std::move(tasks.optimise),
                                                [this](const Task& task) { return room_->HasForMade(task); });
  return absl::OkStatus();
}

std::string RunLeader::NeedsText() const {
  std::string text = absl::StrCat("data.language is ", context_.configuration.data.language);
  if (!devices_.empty())
    absl::StrAppend(&text, " and tasks have the device ", absl::StrJoin(devices_, " or "));
  return text;
}

absl::StatusOr<PublishedWeights> RunLeader::PutWeights() {
  const uint64_t version = context_.progress.policy_version;
  if (offers_) {
    ASSIGN_OR_RETURN(const TrainingGpu::Turn turn, TakeTurn(context_));
    return publisher_.Offer(context_.policy, version);
  }
  ASSIGN_OR_RETURN(const Parameters weights, context_.policy.HostWeights());
  return publisher_.Write(weights, version, published_dtype_);
}

absl::Status RunLeader::Publish() {
  const absl::Status published = PublishOnce();
  if (published.ok() || !offers_) return published;
  // Workers of this host may be another user's, see other files or not reach this GPU: a file may come to them.
  LogWarning(
      absl::StrCat("the workers do not take weights from the GPU's memory, so they get files from now on: ",
                   published.message()));
  offers_ = false;
  return PublishOnce();
}

absl::Status RunLeader::PublishOnce() {
  const absl::Time began = absl::Now();
  ASSIGN_OR_RETURN(const PublishedWeights weights, PutWeights());
  const absl::Time put = absl::Now();
  RETURN_IF_ERROR(client_.Publish(weights));
  int64_t bytes = 0;
  for (const PublishedBuffer& buffer : weights.buffers) bytes += buffer.length_bytes;
  const std::string text = absl::StrFormat(
      "published version %d, %.2f GB by %s: put there in %.3f s, taken by the workers in %.3f s",
      weights.policy_version, static_cast<double>(bytes) / 1e9, weights.transport,
      absl::ToDoubleSeconds(put - began), absl::ToDoubleSeconds(absl::Now() - put));
  // The first says how weights travel; the metrics have the time of each.
  has_published_ ? LogDebug(text) : LogInfo(text);
  has_published_ = true;
  return absl::OkStatus();
}

absl::StatusOr<nlohmann::ordered_json> RunLeader::Evaluate(const std::string& name) {
  const absl::Time start = absl::Now();
  EvaluationTasks held_out{.generate = held_out_, .optimise = context_.progress.held_out_optimise};
  EvaluationTasks unseen{.generate = unseen_operator_, .optimise = context_.progress.unseen_optimise};
  Evaluation evaluation;
  ASSIGN_OR_RETURN(evaluation.held_out, EvaluateTasks(held_out, name));
  ASSIGN_OR_RETURN(evaluation.unseen_operator, EvaluateTasks(unseen, absl::StrCat(name, "_unseen_operator")));
  context_.progress.held_out_optimise = std::move(held_out.optimise);
  context_.progress.unseen_optimise = std::move(unseen.optimise);

  std::vector<NamedScalar> figures = MainFigures(evaluation.held_out);
  figures.emplace_back("evaluation_seconds", absl::ToDoubleSeconds(absl::Now() - start));
  RETURN_IF_ERROR(context_.log->WriteMetrics("evaluation", context_.progress.grpo.step, figures));
  return EvaluationToJson(evaluation);
}

absl::StatusOr<SplitEvaluation> RunLeader::EvaluateTasks(EvaluationTasks& tasks, const std::string& phase) {
  if (tasks.generate.empty()) return SplitEvaluation();
  ProgressLine line;
  line.Start(phase);
  const EvaluationOptions options{
      .num_samples = context_.configuration.evaluation.num_samples,
      .sampling = context_.configuration.grpo.sampling,
      .formula = context_.configuration.grpo.formula,
      .run_seed = context_.configuration.run.seed,
      .may_make = [&](const Task& task) { return room_->HasForMade(task); },
      .on_group =
          [&](int num_arrived, int num_wanted) {
            line.Update(static_cast<double>(num_arrived) / num_wanted,
                        absl::StrCat("evaluation: ", GroupsText(num_arrived, num_wanted)));
          }};
  ASSIGN_OR_RETURN(SplitEvaluation split,
                   EvaluateSplit(tasks, options, context_.progress.policy_version, phase, client_));
  line.Finish(absl::StrCat("evaluation: ", FiguresText(split.sampled)));
  RETURN_IF_ERROR(Dump(phase, split));
  return split;
}

absl::Status RunLeader::Dump(const std::string& phase, const SplitEvaluation& split) {
  const int64_t step = context_.progress.grpo.step;
  for (const TransitionGroup& group : split.sampled_groups) {
    RETURN_IF_ERROR(context_.log->WriteTransitions(phase, step, group, {}));
  }
  for (const TransitionGroup& group : split.greedy_groups) {
    RETURN_IF_ERROR(context_.log->WriteTransitions(absl::StrCat(phase, "_greedy"), step, group, {}));
  }
  return absl::OkStatus();
}

}  // namespace warpsmith
