// TORCH_CHECK and its kin, without streams: a message is put together by overloads.
#ifndef WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_CHECK_H_
#define WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_CHECK_H_

#include <string>

#include "warpsmith_facade/values.h"

namespace warpsmith_facade {

// Throws what the real TORCH_CHECK throws: a c10::Error, RuntimeError in Python.
[[noreturn]] void Fail(const char* function, const char* file, int line, const std::string& message);
// What a dispatch over element types throws: NotImplementedError in Python.
[[noreturn]] void FailUnimplemented(const char* function, const char* file, int line,
                                    const std::string& message);

namespace text {

inline void Append(std::string* to, const char* part) { *to += part; }
inline void Append(std::string* to, const std::string& part) { *to += part; }
inline void Append(std::string* to, char part) { *to += part; }
inline void Append(std::string* to, bool part) { *to += part ? "1" : "0"; }
inline void Append(std::string* to, ScalarType part) { *to += toString(part); }
inline void Append(std::string* to, TypeMeta part) { *to += part.name(); }
inline void Append(std::string* to, Device part) { *to += part.str(); }
template <class T, std::enable_if_t<std::is_arithmetic<T>::value, int> = 0>
void Append(std::string* to, T part) {
  *to += std::to_string(part);
}
template <class T>
void Append(std::string* to, ArrayRef<T> parts) {
  *to += "[";
  const char* separator = "";
  for (const T& part : parts) {
    *to += separator;
    Append(to, part);
    separator = ", ";
  }
  *to += "]";
}
template <class T>
void Append(std::string* to, const std::vector<T>& parts) {
  Append(to, ArrayRef<T>(parts));
}

template <class... Parts>
std::string Of(const Parts&... parts) {
  std::string text;
  (Append(&text, parts), ...);
  return text;
}

}  // namespace text
}  // namespace warpsmith_facade

#define WARPSMITH_FACADE_CHECK(condition, ...)                                               \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      ::warpsmith_facade::Fail(__func__, __FILE__, __LINE__,                                 \
                               ::warpsmith_facade::text::Of("" __VA_OPT__(, ) __VA_ARGS__)); \
    }                                                                                        \
  } while (false)

#define TORCH_CHECK(condition, ...) WARPSMITH_FACADE_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define AT_ASSERTM(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define AT_ASSERT(condition) TORCH_CHECK(condition)
#define TORCH_INTERNAL_ASSERT(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK((a) == (b))
#define TORCH_CHECK_NE(a, b) TORCH_CHECK((a) != (b))
#define TORCH_CHECK_LT(a, b) TORCH_CHECK((a) < (b))
#define TORCH_CHECK_LE(a, b) TORCH_CHECK((a) <= (b))
#define TORCH_CHECK_GT(a, b) TORCH_CHECK((a) > (b))
#define TORCH_CHECK_GE(a, b) TORCH_CHECK((a) >= (b))
#define AT_ERROR(...) \
  ::warpsmith_facade::Fail(__func__, __FILE__, __LINE__, ::warpsmith_facade::text::Of(__VA_ARGS__))

#endif  // WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_CHECK_H_
