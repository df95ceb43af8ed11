// WS_CHECK: for what cannot happen. Prints the expression, its place and the values, and aborts.
//
//   WS_CHECK(index < size) << "index " << index << " of " << size;
//
// What can fail in operation returns absl::Status instead. (c10, Catch2 and glog-like headers all define
// CHECK.)
#ifndef WARPSMITH_CORE_BASE_CHECK_H_
#define WARPSMITH_CORE_BASE_CHECK_H_

#include <sstream>

namespace warpsmith {

// Collects the message of a failed check and aborts the process when it is destroyed.
class CheckFailure {
 public:
  CheckFailure(const char* expression, const char* file, int line);
  [[noreturn]] ~CheckFailure();
  std::ostream& stream() { return message_; }

 private:
  std::ostringstream message_;
};

// Turns a streamed message into void, so that both branches of the conditional agree.
struct CheckVoidify {
  void operator&(std::ostream&) {}
};

}  // namespace warpsmith

#define WS_CHECK(condition)            \
  (__builtin_expect(!!(condition), 1)) \
      ? (void)0                        \
      : ::warpsmith::CheckVoidify() & ::warpsmith::CheckFailure(#condition, __FILE__, __LINE__).stream()

#endif  // WARPSMITH_CORE_BASE_CHECK_H_
