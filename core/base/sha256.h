// SHA-256 (FIPS 180-4), through OpenSSL.
#ifndef WARPSMITH_CORE_BASE_SHA256_H_
#define WARPSMITH_CORE_BASE_SHA256_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace warpsmith {

// Digest of the bytes given so far, in parts.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Update(const void* bytes, size_t num_bytes);
  void Update(std::string_view text) { Update(text.data(), text.size()); }

  // 64 lower-case hexadecimal digits. The object must not be updated afterwards.
  std::string HexDigest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Digest of `text` in 64 lower-case hexadecimal digits.
std::string Sha256Hex(std::string_view text);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_SHA256_H_
