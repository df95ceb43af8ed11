// A zygote in its sandbox whose children do and say what a test has for them, in milliseconds and without Torch:
// oracles, jails and baselines.
//
// A script is a JSON object; everything is optional:
//   "answers"     what is said in place of the usual, by "op", or by "op detail", which goes before: an object, or
//                 a list with one for each time that a process is asked (null, or none left: the usual). "silent":
//                 nothing is said; "end": the process exits with code 7; a number: the usual, after so many
//                 milliseconds. Operations are those of the protocol, and "warm" and "fork" of the zygote and
//                 "hello" of its children. The detail of "hello" is the role, "oracle" or "python"; of "load", by
//                 its inputs, "own" or "other"; of "draw" its style; of "begin" and "run" "native", "ModelNew" or
//                 "Model", with " sealed" behind it in a sealed jail, or the form of a
//                 reference that is not eager.
//   "children"    by a child's number among the forks, from 0: what it says in place of "answers"
//   "loaded"      of an oracle's description of its task, what is not one float32[4] in and one out
//   "spins"       milliseconds of CPU time that an oracle takes to load its task; else 0
//   "expected"    the number that fills the expected outputs, by style; "other": on other inputs; else 0
//   "output"      the number that jails fill their outputs with; else 0
//   "has_thread"  candidates have a second thread, which sleeps
//   "records"     the list that recording gives; else []
//   "warm"        fields of the zygote's first packet that are other than usual
//   "complaint"   what the zygote writes to its standard error
// Whoever is asked anything else tells its number among the forks, its "rights" and what it was begun with.
#ifndef WARPSMITH_TESTS_SUPPORT_PUPPET_ZYGOTE_H_
#define WARPSMITH_TESTS_SUPPORT_PUPPET_ZYGOTE_H_

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "reward_service/measure/lane.h"
#include "reward_service/referee/process/zygote.h"

namespace warpsmith {

// What a referee takes for Python. Its zygote's script is SHARE/jail/zygote.py.
std::filesystem::path PuppetPython();
void WritePuppetScript(const std::filesystem::path& share_directory, const nlohmann::json& script);

// This process becomes the children's parent.
absl::StatusOr<std::unique_ptr<Zygote>> TryStartPuppets(const nlohmann::json& script);
// Ends the program when they do not start.
std::unique_ptr<Zygote> StartPuppets(const nlohmann::json& script = nlohmann::json::object());

// The machine's last core, without real-time priority.
const Lane& PuppetLane();

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_PUPPET_ZYGOTE_H_
