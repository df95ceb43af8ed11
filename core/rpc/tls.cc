#include "core/rpc/tls.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr int64_t kPemBytesMax = 1 << 20;

template <auto kFree>
struct Freeing {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Bio = std::unique_ptr<BIO, Freeing<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freeing<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freeing<EVP_PKEY_free>>;

Bio OpenText(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string DateOf(const ASN1_TIME* time) {
  const Bio out(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(out.get(), time);
  char* text = nullptr;
  const long length = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<size_t>(length)};
}

absl::StatusOr<Certificate> ParseCertificate(const std::filesystem::path& path, const std::string& text) {
  Certificate certificate(PEM_read_bio_X509(OpenText(text).get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(path.string(), ": no certificate in PEM"));
  }
  const ASN1_TIME* const begin = X509_get0_notBefore(certificate.get());
  const ASN1_TIME* const end = X509_get0_notAfter(certificate.get());
  if (X509_cmp_current_time(end) < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), ": the certificate expired on ", DateOf(end), "; renew it"));
  }
  if (X509_cmp_current_time(begin) > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), ": the certificate is not valid before ", DateOf(begin)));
  }
  return certificate;
}

absl::Status CheckPair(const TlsFiles& files, const TlsIdentity& identity) {
  ASSIGN_OR_RETURN(const Certificate certificate, ParseCertificate(files.certificate, identity.certificate));
  const Key key(PEM_read_bio_PrivateKey(OpenText(identity.key).get(), nullptr, nullptr, nullptr));
  if (key == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(files.key.string(), ": no private key in PEM"));
  }
  if (X509_check_private_key(certificate.get(), key.get()) == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(files.key.string(), " is not the key of ", files.certificate.string()));
}

}  // namespace

absl::StatusOr<TlsIdentity> ReadTls(const TlsFiles& files) {
  if (files.certificate.empty() != files.key.empty()) {
    return absl::InvalidArgumentError("TLS needs both a certificate and its key, or neither");
  }
  TlsIdentity identity;
  if (!files.authority.empty()) {
    ASSIGN_OR_RETURN(identity.authority, ReadFile(files.authority, kPemBytesMax));
    RETURN_IF_ERROR(ParseCertificate(files.authority, identity.authority).status());
  }
  if (files.certificate.empty()) return identity;
  ASSIGN_OR_RETURN(identity.certificate, ReadFile(files.certificate, kPemBytesMax));
  ASSIGN_OR_RETURN(identity.key, ReadFile(files.key, kPemBytesMax));
  RETURN_IF_ERROR(CheckPair(files, identity));
  return identity;
}

}  // namespace warpsmith
