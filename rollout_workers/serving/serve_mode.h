// `warpsmith-rollout serve`: a checkpoint behind OpenAI's HTTP API, until a signal ends it.
#ifndef WARPSMITH_ROLLOUT_WORKERS_SERVING_SERVE_MODE_H_
#define WARPSMITH_ROLLOUT_WORKERS_SERVING_SERVE_MODE_H_

#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rollout_workers/placement.h"

namespace warpsmith::serving {

struct ServeOptions {
  std::filesystem::path model;  // folder of a Hugging Face checkpoint
  std::string name;             // that clients ask for; empty: the folder's
  std::string address = "127.0.0.1:8000";
  std::filesystem::path token_file;   // empty: every client that reaches the address may ask
  int num_threads = 0;                // of the kernels; 0: one for each core
  int num_slots = 8;                  // choices that decode together
  int waiting_max = 256;              // choices that wait for a slot; more are told to come again
  int64_t context_tokens_max = 0;     // of prompt and answer; 0: the model's, at most kContextTokensDefault
  std::optional<CudaPlacement> cuda;  // none: the CPU
};

// Serves. Prints "listening on ADDRESS" to standard output as soon as requests are answered (by 503 at
// first), and "serving NAME at http://ADDRESS/v1" once the weights are there. At one of `stop_signals`, which
// the caller has blocked, it takes no more requests and gives those under way eight seconds; a signal that
// comes before the weights are there ends the process at once.
absl::Status Serve(const ServeOptions& options, const sigset_t& stop_signals);

// The token in a file, white space around it aside. INVALID_ARGUMENT for one of fewer than 16 bytes, which
// could be guessed.
absl::StatusOr<std::string> ReadTokenFile(const std::filesystem::path& path);

// NOT_FOUND for what is no folder, and for a folder that lacks files which are served, with their names and how to come
// by such a folder.
absl::Status CheckHoldsCheckpoint(const std::filesystem::path& folder);

// The name that a folder gives its model: its own, also of "." and of "export/".
std::string NameOfFolder(const std::filesystem::path& folder);

}  // namespace warpsmith::serving

#endif  // WARPSMITH_ROLLOUT_WORKERS_SERVING_SERVE_MODE_H_
