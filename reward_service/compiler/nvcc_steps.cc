#include "reward_service/compiler/nvcc_steps.h"

#include <algorithm>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"
#include "reward_service/compiler/toolchain.h"

namespace warpsmith {
namespace {

constexpr std::string_view kMark = "#$ ";
// What steps find in their environment.
constexpr std::string_view kVariables[] = {"CICC_PATH", "LD_LIBRARY_PATH", "NVVMIR_LIBRARY_DIR", "PATH"};
// Words by which steps are known, in their order: two chains, and then what needs both.
constexpr std::string_view kHostChain[] = {".cpp4.ii\"", "cudafe++ "};
constexpr std::string_view kDeviceChain[] = {".cpp1.ii\"", "/cicc\" ", "ptxas ", "fatbinary "};
constexpr size_t kNumChained = std::size(kHostChain) + std::size(kDeviceChain);
constexpr size_t kLastStepsMax = 2;  // compiling the host's code, linking

constexpr char kDeviceMessages[] = "/tmp/device.messages";
// cudafe++ would make a name for the module from the source and write it for cicc to read. Any name will do that both
// have.
constexpr std::string_view kMakesName = "--gen_module_id_file ";
constexpr std::string_view kNameFile = "--module_id_file_name ";
constexpr char kModuleName[] = "_candidate";

bool IsVariable(std::string_view line) {
  return std::any_of(std::begin(kVariables), std::end(kVariables), [&](std::string_view name) {
    return line.substr(0, name.size()) == name && line.substr(name.size(), 1) == "=";
  });
}

// "NAME=value" as the shell takes it, whatever the value.
std::string Exported(std::string_view line) {
  const size_t equals = line.find('=');
  std::string value(line.substr(equals + 1));
  for (size_t i = value.find('\''); i != std::string::npos; i = value.find('\'', i + 4))
    value.replace(i, 1, "'\\''");
  return absl::StrCat("export ", std::string(line.substr(0, equals)), "='", value, "'");
}

// Assignments are made with no more than a name before the sign.
bool IsAssignment(std::string_view line) {
  const size_t equals = line.find('=');
  return equals != std::string_view::npos && line.find_first_of(" \"") > equals;
}

// The name of the file in quotes behind kNameFile; empty where there is none.
std::string NameFile(std::string_view step) {
  const size_t begin = step.find(kNameFile);
  if (begin == std::string_view::npos) return "";
  const std::string_view rest = step.substr(begin + kNameFile.size());
  return std::string(rest.substr(0, rest.find('"', 1) + 1));
}

template <size_t n>
bool Are(const std::string_view (&words)[n], std::vector<std::string>::const_iterator steps) {
  return std::equal(
      std::begin(words), std::end(words), steps,
      [](std::string_view word, const std::string& step) { return step.find(word) != step.npos; });
}

std::string Chain(std::vector<std::string>::const_iterator begin,
                  std::vector<std::string>::const_iterator end) {
  return absl::StrJoin(begin, end, " && ");
}

}  // namespace

absl::StatusOr<std::string> ScriptOfSteps(std::string_view dry_run) {
  std::string script;
  std::vector<std::string> steps;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(dry_run.data(), dry_run.size()), '\n')) {
    std::string_view step(line.data(), line.size());
    if (step.substr(0, kMark.size()) != kMark) continue;
    step.remove_prefix(kMark.size());
    if (IsVariable(step)) absl::StrAppend(&script, Exported(step), "\n");
    if (!IsAssignment(step)) steps.emplace_back(step);
  }
  const bool known = steps.size() > kNumChained && steps.size() <= kNumChained + kLastStepsMax &&
                     Are(kHostChain, steps.begin()) &&
                     Are(kDeviceChain, steps.begin() + std::size(kHostChain));
  if (!known)
    return absl::UnimplementedError(absl::StrCat(steps.size(), " steps of nvcc, not those that are known"));
  std::string& splits = steps[1];
  const std::string name_file = NameFile(splits);
  const size_t makes_name = splits.find(kMakesName);
  if (makes_name == std::string::npos || name_file.empty())
    return absl::UnimplementedError("nvcc names its modules in another way than is known");
  splits.erase(makes_name, kMakesName.size());
  const auto device = steps.begin() + std::size(kHostChain), last = steps.begin() + kNumChained;
  absl::StrAppend(&script, "printf %s ", kModuleName, " >", name_file, "\n");
  absl::StrAppend(&script, "{ ", Chain(device, last), "; } 2>", kDeviceMessages, " &\n");
  absl::StrAppend(&script, Chain(steps.begin(), device), " || exit\n");
  absl::StrAppend(&script, "wait $!; status=$?; cat ", kDeviceMessages,
                  " >&2; [ $status = 0 ] || exit $status\n");
  absl::StrAppend(&script, Chain(last, steps.end()), "\n");
  return script;
}

std::vector<std::string> InTwoChains(const std::vector<std::string>& command,
                                     const std::atomic<bool>& cancelled) {
  std::vector<std::string> question = {"/bin/sh", "-c", "cd /tmp && exec \"$@\" --dryrun", "sh"};
  question.insert(question.end(), command.begin(), command.end());
  const absl::StatusOr<std::string> answer = OutputOf(question, &cancelled);
  if (!answer.ok()) return command;
  absl::StatusOr<std::string> script = ScriptOfSteps(*answer);
  if (!script.ok()) return command;
  return {"/bin/sh", "-c", *std::move(script), "sh"};
}

}  // namespace warpsmith
