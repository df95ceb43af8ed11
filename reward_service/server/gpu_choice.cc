#include "reward_service/server/gpu_choice.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/log.h"

namespace warpsmith {

absl::StatusOr<GpuChoice> ParseGpuChoice(const std::string& text) {
  constexpr char kCuda[] = "cuda:";
  constexpr int kIndexMax = 63;
  if (text == "all") return GpuChoice{};
  if (text == "none") return GpuChoice{.wanted = false};
  GpuChoice choice{.required = true};
  if (text == "required") return choice;
  const std::string list = text.starts_with(kCuda) ? text.substr(sizeof(kCuda) - 1) : "";
  const std::vector<std::string> numbers = absl::StrSplit(list, ',');
  for (const std::string& number : numbers) {
    int index = 0;
    const bool is_digits = std::all_of(number.begin(), number.end(), [](char c) {
      return absl::ascii_isdigit(static_cast<unsigned char>(c));
    });
    const bool is_index = is_digits && absl::SimpleAtoi(number, &index) && index <= kIndexMax;
    const bool is_new =
        std::find(choice.indices.begin(), choice.indices.end(), index) == choice.indices.end();
    if (!is_index || !is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat("is \"", Escape(text, 64),
                       "\": give all, required, none, or GPUs by their indices, each once, as cuda:1 or "
                       "cuda:0,1"));
    }
    choice.indices.push_back(index);
  }
  return choice;
}

}  // namespace warpsmith
