// Headers of the standard library that torch/extension.h brings along, and answers count on.
#ifndef WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_STANDARD_H_
#define WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_STANDARD_H_

#include <array>
#include <cassert>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#ifndef WARPSMITH_FACADE_LEAN  // of a program that names nothing of these
#include <algorithm>
#include <memory>
#include <numeric>
#endif
#ifndef __CUDACC__  // cannot precompile headers, and seldom needs these
#include <atomic>
#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#endif

#endif  // WARPSMITH_REWARD_SERVICE_FACADE_INCLUDE_WARPSMITH_FACADE_STANDARD_H_
