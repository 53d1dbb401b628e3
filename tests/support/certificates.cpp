#include "tests/support/certificates.hpp"

#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace weft::testing {
namespace {

constexpr long kSecondsPerDay = 86400;

struct File {
  explicit File(const std::string& path) : file(std::fopen(path.c_str(), "we")) {
    if (file == nullptr) throw std::runtime_error("can't write " + path);
  }
  ~File() { std::fclose(file); }
  std::FILE* file;
};

void add_extension(X509* certificate, int which, const std::string& value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, which, value.c_str());
  if (extension == nullptr) throw std::runtime_error("bad extension " + value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

EVP_PKEY* make_key(int rsa_bits) {
  return rsa_bits == 0 ? EVP_EC_gen("P-256") : EVP_RSA_gen(static_cast<unsigned>(rsa_bits));
}

/// Returns a certificate without a signature; the caller still owns `key`.
X509* make_certificate(const std::string& name, EVP_PKEY* key, const X509_NAME* issuer,
                       const IssueOptions& options) {
  static long serial = 0;
  X509* certificate = X509_new();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), options.from_days * kSecondsPerDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate), options.to_days * kSecondsPerDay);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate,
                       issuer != nullptr ? issuer : X509_get_subject_name(certificate));
  X509_set_pubkey(certificate, key);
  return certificate;
}

}  // namespace

struct Authority::State {
  EVP_PKEY* key;
  X509* certificate = nullptr;
};

Authority::Authority(const std::string& name, const AuthorityOptions& options)
    : state_(std::make_unique<State>(make_key(options.rsa_bits))) {
  state_->certificate = make_certificate(name, state_->key, nullptr, {});
  if (!options.usage.empty()) {
    add_extension(state_->certificate, NID_ext_key_usage, options.usage);
  }
  add_extension(state_->certificate, NID_basic_constraints, "critical,CA:TRUE");
  X509_sign(state_->certificate, state_->key, EVP_sha256());
}

Authority::~Authority() {
  X509_free(state_->certificate);
  EVP_PKEY_free(state_->key);
}

TlsConfig Authority::issue(const std::string& folder, const std::string& name,
                           const IssueOptions& options) const {
  std::filesystem::create_directories(folder);
  TlsConfig tls{.certificate = folder + "/" + name + ".crt",
                .key = folder + "/" + name + ".key",
                .ca = folder + "/ca.crt"};
  EVP_PKEY* key = make_key(options.rsa_bits);
  X509* certificate =
      make_certificate(name, key, X509_get_subject_name(state_->certificate), options);
  if (!options.usage.empty()) add_extension(certificate, NID_ext_key_usage, options.usage);
  X509_sign(certificate, state_->key, EVP_sha256());
  PEM_write_X509(File(tls.certificate).file, certificate);
  PEM_write_X509(File(tls.ca).file, state_->certificate);
  char passphrase[] = "secret";
  PEM_write_PrivateKey(File(tls.key).file, key, options.encrypted ? EVP_aes_128_cbc() : nullptr,
                       nullptr, 0, nullptr, options.encrypted ? passphrase : nullptr);
  ::chmod(tls.key.c_str(), 0600);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return tls;
}

}  // namespace weft::testing
