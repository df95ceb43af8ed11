// Compiles a native candidate's source to a shared library, outside any sandbox: for tests and benchmarks
// only.
#ifndef WARPSMITH_TESTS_SUPPORT_CANDIDATE_LIBRARY_H_
#define WARPSMITH_TESTS_SUPPORT_CANDIDATE_LIBRARY_H_

#include <string>

#include "core/base/unique_fd.h"

namespace warpsmith {

// Returns an open descriptor of the library that g++ -O3 makes of `source`. Compiles each source once a process. Ends
// the test program when the source does not compile. For one thread.
// A body may use `x` (inputs[0]) and `y` (outputs[0]) as float pointers and `n` elements of y, through
// CandidateBody.
UniqueFd CompileCandidate(const std::string& source);

// A whole source from statements of `run`, with `head` before it.
std::string CandidateBody(const std::string& statements, const std::string& head = "");

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_CANDIDATE_LIBRARY_H_
