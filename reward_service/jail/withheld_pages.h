// Taking the code of libraries away from a process, all but the pages that permitted operators execute.
//
// The zygote calls PrepareLearning(), forks a child that calls LearnPages(), runs every permitted operator, calls
// LearnCopies(), runs every copy and ends, and then calls FinishLearning(). Each jail that it forks later may call
// WithholdPages(). What a page of code holds may still be read: where no memory can be made executable
// (RefuseNewCode()), reading code is no way to run it.
#ifndef WARPSMITH_REWARD_SERVICE_JAIL_WITHHELD_PAGES_H_
#define WARPSMITH_REWARD_SERVICE_JAIL_WITHHELD_PAGES_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace warpsmith {

// Whether all of a library's code stays: the interpreter's own, the C, C++, mathematics, OpenMP and loader
// libraries, and what only describes tensors or leads to them.
bool IsKeptWhole(absl::string_view path);

// Takes down which libraries are loaded. Later ones are not withheld. All code of those in `kept`, by paths that lead
// to their files, stays, too.
absl::Status PrepareLearning(const std::set<std::string>& kept = {});

// In a child: no code that is not kept whole is executable any more, but a page that is executed becomes so,
// for good, and is remembered where the parent sees it.
absl::Status LearnPages();

// In that child: pages that are executed for the first time from now on are those of copies.
void LearnCopies();

// Says whether libraries may copy tensors for a program: not where the reference itself moves data.
enum class Copies { kWithheld, kByLibraries };

// In the parent, once that child has ended. Returns the code that remains, as the referee takes it (see PermittedCode):
// a JSON list of two objects, without the copies and with them, of file names, each with its pages as [first, number]
// in units of 4 KiB, or with true for all of it.
std::string FinishLearning();

// The same where nothing was learnt: every library that is loaded now, whole.
std::string LoadedCodeText();

// Takes the code away by some hundred system calls. Threads that are in the midst of withheld code end the process by a
// fault.
absl::Status WithholdPages(Copies copies = Copies::kWithheld);

// Whether WithholdPages() took `address` away. For signal handlers, too.
bool IsWithheld(const void* address);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_JAIL_WITHHELD_PAGES_H_
