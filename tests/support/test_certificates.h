// Certificates made on the spot, for tests of encrypted connections.
#ifndef WARPSMITH_TESTS_SUPPORT_TEST_CERTIFICATES_H_
#define WARPSMITH_TESTS_SUPPORT_TEST_CERTIFICATES_H_

#include <filesystem>
#include <string>

#include "absl/time/time.h"
#include "core/rpc/tls.h"

namespace warpsmith {

// In PEM.
struct CertifiedKey {
  std::string certificate;
  std::string key;
};

// An authority that signs itself.
CertifiedKey MakeAuthority(const std::string& name);

// A certificate in `name`, for servers at localhost and 127.0.0.1 and for clients, valid from yesterday for
// `validity` (negative: it ended so long ago).
CertifiedKey MakeCertificate(const std::string& name, const CertifiedKey& authority,
                             absl::Duration validity = absl::Hours(24));

// Writes NAME.pem and NAME.key.
TlsFiles WriteTls(const std::filesystem::path& directory, const std::string& name, const CertifiedKey& pair);

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_TEST_CERTIFICATES_H_
