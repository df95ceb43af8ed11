// Runs one native candidate at the referee's command.
#ifndef WARPSMITH_REWARD_SERVICE_JAIL_NATIVE_RUNNER_H_
#define WARPSMITH_REWARD_SERVICE_JAIL_NATIVE_RUNNER_H_

#include "core/base/unique_fd.h"
#include "reward_service/cuda/gpu_memory.h"

namespace warpsmith {

// Obeys the referee on `socket` until it hangs up, in a process that is confined already:
//   {"op":"begin","inputs":[T],"parameters":[T],"outputs":[T],"input_bytes":int,"output_bytes":int} with
//     descriptors: library, inputs, two slots of outputs; T is {"code","bits","shape","offset"} in terms of
//     DLPack. Answer {"op":"ready"} or {"op":"failed","error"}.
//   {"op":"run","slot":0|1}: calls the candidate. Answer {"op":"done","result":int}.
//   {"op":"profile","slot":0|1,"room":int}: calls it once more, watched. Answer {"op":"profiled"}, with its launches.
// `libraries` is the way into kLibraryFolder. It and all descriptors are closed before the library is loaded:
// a file that outlives the jail could carry something to the next. With `gpu`, which outlives the call, the
// descriptors are of memory on it, the tensors lie there, and the candidate gets a stream; its work is done before
// the answer. The process's exit code.
int RunNativeJail(int socket, UniqueFd libraries, const cuda::GpuContext* gpu);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_JAIL_NATIVE_RUNNER_H_
