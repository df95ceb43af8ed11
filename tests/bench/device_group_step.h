// A decoding step on GPUs that share a model: what device_decode_rates measures with --devices.
#ifndef WARPSMITH_TESTS_BENCH_DEVICE_GROUP_STEP_H_
#define WARPSMITH_TESTS_BENCH_DEVICE_GROUP_STEP_H_

#include <cstdint>
#include <string>

namespace warpsmith {

// Prints the step's time from graphs, its share of what copies on all GPUs attain together, and the time of its
// exchanges alone. `devices` as "0,1". The head is read by the first GPU alone, as the engine does.
void ReportGroup(const std::string& model, int64_t sequences, int64_t context, bool whole,
                 const std::string& devices);

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_BENCH_DEVICE_GROUP_STEP_H_
