// The referee's own process: zygotes, task pool, the judge's thread, and the channel to the service.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_REFEREE_PROCESS_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_REFEREE_PROCESS_H_

#include "absl/status/status.h"

namespace warpsmith {

// Serves the channel until the service hangs up (OK) or something of the machine fails. The first packet is
// {"op":"start"} with the options; then
//   {"op":"judge"} with descriptors task source, library or program, extensions -> {"op":"judged"}
//   {"op":"record"} with descriptors task source, program -> {"op":"recorded"} and a descriptor with the JSON
//   list
//   {"op":"prefetch"} with descriptor task source -> nothing
// or {"op":"failed","code","error"}. Judge and record carry "id", which the answer repeats.
absl::Status ServeReferee(int socket);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_REFEREE_PROCESS_H_
