// Headers of the standard library and of Abseil that most sources include. Not JSON's: its inline literals instantiate
// a parser in every source that reads the header, which takes gcc 12 half a second even where none is used.
#ifndef WARPSMITH_CMAKE_PRECOMPILED_LIBRARIES_H_
#define WARPSMITH_CMAKE_PRECOMPILED_LIBRARIES_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#endif  // WARPSMITH_CMAKE_PRECOMPILED_LIBRARIES_H_
