// Between the contracts and the worker's own structs. The only place that knows both.
#ifndef WARPSMITH_ROLLOUT_WORKERS_WIRE_H_
#define WARPSMITH_ROLLOUT_WORKERS_WIRE_H_

#include <string>
#include <vector>

#include "rollout_workers/engine.h"
#include "rollout_workers/generation.h"
#include "rollout_workers/paged/entries_on_change.h"
#include "rollout_workers/sampling_parameters.h"
#include "rollout_workers/weights.h"
#include "warpsmith/v1/rollout_service.pb.h"
#include "warpsmith/v1/transition.pb.h"
#include "warpsmith/v1/weights.pb.h"

namespace warpsmith {

SamplingParameters SamplingFromProto(const v1::SamplingParameters& proto);

OfferedWeights OfferedWeightsFromProto(const v1::WeightsManifest& proto);

paged::EntriesOnChange EntriesOnChangeFromProto(v1::SamplesUnderWay proto);

SleepDepth SleepDepthFromProto(v1::SleepDepth proto);

// Everything of a Transition but its grade and sample_index. `answer`, valid UTF-8, becomes its text.
void FillTransition(const FinishedSample& sample, const std::vector<int32_t>& prompt_token_ids,
                    const std::string& answer, v1::Transition* transition);

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_WIRE_H_
