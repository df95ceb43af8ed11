#include "tests/support/test_certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <fstream>
#include <random>

#include "core/base/check.h"

namespace warpsmith {
namespace {

constexpr long kDaySeconds = 24 * 60 * 60;

// What `write` puts into memory.
template <class Write>
std::string PemOf(Write write) {
  BIO* const out = BIO_new(BIO_s_mem());
  WS_CHECK(write(out) == 1);
  char* text = nullptr;
  const long length = BIO_get_mem_data(out, &text);
  std::string pem(text, static_cast<size_t>(length));
  BIO_free(out);
  return pem;
}

void AddExtension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
  WS_CHECK(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Null `authority`: signs itself.
CertifiedKey Make(const std::string& name, const CertifiedKey* authority, absl::Duration validity) {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), static_cast<long>(std::random_device()() >> 1) + 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -kDaySeconds);
  X509_gmtime_adj(X509_getm_notAfter(certificate), static_cast<long>(absl::ToInt64Seconds(validity)));
  X509_set_pubkey(certificate, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509* issuer = certificate;
  EVP_PKEY* signer = key;
  if (authority != nullptr) {
    BIO* const text = BIO_new_mem_buf(authority->certificate.data(), -1);
    issuer = PEM_read_bio_X509(text, nullptr, nullptr, nullptr);
    BIO_free(text);
    BIO* const key_text = BIO_new_mem_buf(authority->key.data(), -1);
    signer = PEM_read_bio_PrivateKey(key_text, nullptr, nullptr, nullptr);
    BIO_free(key_text);
    AddExtension(certificate, issuer, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  } else {
    AddExtension(certificate, issuer, NID_basic_constraints, "critical,CA:TRUE");
  }
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
  WS_CHECK(X509_sign(certificate, signer, EVP_sha256()) > 0);
  CertifiedKey made;
  made.certificate = PemOf([&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
  made.key = PemOf(
      [&](BIO* out) { return PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr); });
  if (authority != nullptr) {
    X509_free(issuer);
    EVP_PKEY_free(signer);
  }
  X509_free(certificate);
  EVP_PKEY_free(key);
  return made;
}

}  // namespace

CertifiedKey MakeAuthority(const std::string& name) { return Make(name, nullptr, absl::Hours(24)); }

CertifiedKey MakeCertificate(const std::string& name, const CertifiedKey& authority,
                             absl::Duration validity) {
  return Make(name, &authority, validity);
}

TlsFiles WriteTls(const std::filesystem::path& directory, const std::string& name, const CertifiedKey& pair) {
  const TlsFiles files{.certificate = directory / (name + ".pem"), .key = directory / (name + ".key")};
  std::ofstream(files.certificate) << pair.certificate;
  std::ofstream(files.key) << pair.key;
  return files;
}

}  // namespace warpsmith
