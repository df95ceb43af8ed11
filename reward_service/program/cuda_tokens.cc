#include "reward_service/program/cuda_tokens.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "reward_service/program/cpp_tokens.h"

namespace warpsmith {
namespace {

// Longer ones are not read: a launch's configuration, a declaration.
constexpr size_t kTokensMax = 64;

std::string_view At(const std::vector<std::string_view>& tokens, size_t position) {
  return position < tokens.size() ? tokens[position] : std::string_view();
}

// Three signs with nothing between them, and no fourth before.
bool IsTripleAt(const std::vector<std::string_view>& tokens, size_t position) {
  const auto follows = [&](size_t left) {
    return At(tokens, left) == "<" && At(tokens, left + 1) == "<" &&
           tokens[left].data() + 1 == tokens[left + 1].data();
  };
  return follows(position) && follows(position + 1) && (position == 0 || !follows(position - 1));
}

bool LaunchesByName(std::string_view word) {
  static constexpr std::string_view kWords[] = {"cudaLaunchKernel", "cudaLaunchKernelEx",
                                                "cudaLaunchKernelExC", "cudaLaunchCooperativeKernel"};
  return absl::c_linear_search(kWords, word);
}

// The first comma after `position` that stands in no parentheses.
size_t NextComma(const std::vector<std::string_view>& tokens, size_t position) {
  const size_t end = std::min(tokens.size(), position + kTokensMax);
  int depth = 0;
  for (; position < end; ++position) {
    if (tokens[position] == "(") ++depth;
    if (tokens[position] == ")") --depth;
    if (tokens[position] == "," && depth == 0) break;
  }
  return position;
}

}  // namespace

std::optional<LaunchTokens> LaunchAt(const std::vector<std::string_view>& tokens, size_t position) {
  if (LaunchesByName(At(tokens, position))) return LaunchTokens{};
  if (!IsTripleAt(tokens, position)) return std::nullopt;
  const size_t grid = position + 3;
  const size_t block = NextComma(tokens, grid) + 1;
  const std::string_view after_block = At(tokens, block + 1);
  return LaunchTokens{.one_block = At(tokens, grid) == "1" && block == grid + 2,
                      .one_thread = At(tokens, block) == "1" && (after_block == "," || after_block == ">")};
}

bool Synchronises(std::string_view word) {
  static constexpr std::string_view kWords[] = {"cudaDeviceSynchronize", "cudaStreamSynchronize",
                                                "cudaEventSynchronize", "cudaMemcpy"};
  return absl::c_linear_search(kWords, word);
}

bool AllocatesOnGpu(std::string_view word) {
  static constexpr std::string_view kWords[] = {"cudaMalloc", "cudaMallocAsync", "cudaMallocManaged",
                                                "cudaMallocPitch", "cudaMallocFromPoolAsync"};
  return absl::c_linear_search(kWords, word);
}

std::string_view ThreadVariable(const std::vector<std::string_view>& tokens, size_t position) {
  std::string_view name;
  bool has_index = false;
  const size_t end = std::min(tokens.size(), position + kTokensMax);
  for (size_t i = position; i < end; ++i) {
    const std::string_view token = tokens[i];
    if (token == ";") return has_index ? name : std::string_view();
    if (token == "=" && name.empty() && i > position) {
      name = tokens[i - 1];
    } else if (!IsWord(token) && token != "." && token != "+" && token != "*" && token != "(" &&
               token != ")") {
      return {};  // divided, shifted or compared: neighbours may have one value
    }
    if (token != "threadIdx") continue;
    if (At(tokens, i + 2) != "x" || At(tokens, i + 3) == "*") return {};
    if (i > 0 && tokens[i - 1] == "*") return {};
    has_index = !name.empty();
  }
  return {};
}

bool DeclaresPointer(const std::vector<std::string_view>& tokens, size_t position) {
  bool has_star = false;
  const size_t end = std::min(tokens.size(), position + kTokensMax);
  for (size_t i = position; i < end; ++i) {
    if (tokens[i] == "=") return has_star && i > position + 2;
    has_star |= tokens[i] == "*" && i > position;
    if (!IsWord(tokens[i]) && tokens[i] != "*") return false;
  }
  return false;
}

}  // namespace warpsmith
