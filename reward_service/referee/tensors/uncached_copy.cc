#include "reward_service/referee/tensors/uncached_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace warpsmith {
namespace {

#if defined(__x86_64__)

constexpr size_t kVectorBytes = sizeof(__m128i);

// Bytes before the first address that a vector store may go to.
size_t HeadBytes(const char* to, size_t num_bytes) {
  const size_t misalignment = reinterpret_cast<uintptr_t>(to) % kVectorBytes;
  return std::min(num_bytes, misalignment == 0 ? 0 : kVectorBytes - misalignment);
}

#endif

}  // namespace

#if defined(__x86_64__)

void CopyUncached(char* to, const char* from, size_t num_bytes) {
  size_t at = HeadBytes(to, num_bytes);
  std::memcpy(to, from, at);
  for (; at + kVectorBytes <= num_bytes; at += kVectorBytes) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
  }
  std::memcpy(to + at, from + at, num_bytes - at);
  _mm_sfence();
}

void FillUncached(char* to, unsigned char value, size_t num_bytes) {
  size_t at = HeadBytes(to, num_bytes);
  std::memset(to, value, at);
  const __m128i values = _mm_set1_epi8(static_cast<char>(value));
  for (; at + kVectorBytes <= num_bytes; at += kVectorBytes) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), values);
  }
  std::memset(to + at, value, num_bytes - at);
  _mm_sfence();
}

#else

void CopyUncached(char* to, const char* from, size_t num_bytes) { std::memcpy(to, from, num_bytes); }
void FillUncached(char* to, unsigned char value, size_t num_bytes) { std::memset(to, value, num_bytes); }

#endif

}  // namespace warpsmith
