#include "core/base/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "core/base/check.h"

namespace warpsmith {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  WS_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1) << "OpenSSL has no SHA-256";
}

Sha256::~Sha256() = default;

void Sha256::Update(const void* bytes, size_t num_bytes) {
  WS_CHECK(EVP_DigestUpdate(state_->context, bytes, num_bytes) == 1);
}

std::string Sha256::HexDigest() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int length = 0;
  WS_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &length) == 1);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * length);
  for (unsigned int i = 0; i < length; ++i) {
    hex.push_back(kDigits[digest[i] >> 4]);
    hex.push_back(kDigits[digest[i] & 15]);
  }
  return hex;
}

std::string Sha256Hex(std::string_view text) {
  Sha256 sha;
  sha.Update(text);
  return sha.HexDigest();
}

}  // namespace warpsmith
