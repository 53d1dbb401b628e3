#include <weft/job/tls.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <weft/tensor/error.hpp>

#include "data/files/plain_file.hpp"

namespace weft {
namespace {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* value) const {
    Free(value);
  }
};
using File = std::unique_ptr<std::FILE, Freed<std::fclose>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Store = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;
using TlsDefaults = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>>;

void free_chain(STACK_OF(X509) * chain) { sk_X509_pop_free(chain, X509_free); }
using Chain = std::unique_ptr<STACK_OF(X509), Freed<free_chain>>;

/// The limit on a PEM file. A bundle of all CAs that a system trusts has about 200 KB.
constexpr off_t kPemBytesMax = 16 << 20;

/// A file that a field of TlsConfig names, with functions that report errors about it.
struct Named {
  std::string field;
  const std::string& path;

  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> what, Args&&... args) const {
    ERR_clear_error();
    fail(Errc::invalid_argument, "{} = \"{}\": {}", field, path,
         fmt::format(what, std::forward<Args>(args)...));
  }
  File open() const {
    require_local_path(path, field);
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    File file(fd >= 0 ? ::fdopen(fd, "r") : nullptr);
    if (!file) refuse("can't be read: {}; name a PEM file of this user", std::strerror(errno));
    struct stat status {};
    if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
      refuse("isn't a regular file, but weft reads it more than once; name a PEM file");
    }
    if (status.st_size > kPemBytesMax) {
      refuse("has {} bytes: expected a PEM file of at most {} bytes", status.st_size, kPemBytesMax);
    }
    return file;
  }
};

/// Refuses an encrypted key. Without this function, OpenSSL asks for a passphrase at the terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

Chain read_certificates(const Named& named) {
  const File file = named.open();
  Chain chain(sk_X509_new_null());
  while (X509* certificate = PEM_read_X509(file.get(), nullptr, no_passphrase, nullptr)) {
    sk_X509_push(chain.get(), certificate);
  }
  const int count = sk_X509_num(chain.get());
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!at_end) {
    named.refuse("has an unreadable certificate after {} readable ones; copy the file again",
                 count);
  }
  if (count == 0) {
    named.refuse("has no certificate in it; expected PEM (-----BEGIN CERTIFICATE-----)");
  }
  return chain;
}

Key read_key(const Named& named) {
  const File file = named.open();
  struct stat status {};
  if (::fstat(fileno(file.get()), &status) != 0 || (status.st_mode & 077U) != 0) {
    named.refuse("may be read by others (mode {:04o}); do: chmod 600 {}", status.st_mode & 07777U,
                 named.path);
  }
  Key key(PEM_read_PrivateKey(file.get(), nullptr, no_passphrase, nullptr));
  if (!key)
    named.refuse(
        "has no key that can be read without a passphrase; expected a decrypted key in PEM");
  return key;
}

/// Returns a text such as "CN = trainer".
std::string name_of(X509_NAME* name) {
  char text[256];
  return X509_NAME_oneline(name, text, sizeof text) != nullptr ? text : "?";
}

[[noreturn]] void refuse_chain(const Named& certificate, X509* own, const Named& ca, int why) {
  const char* text = X509_verify_cert_error_string(why);
  switch (why) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      certificate.refuse("is not valid today ({}), or the CA's is not; have it issued again", text);
    case X509_V_ERR_INVALID_PURPOSE:
      certificate.refuse(
          "may not be used on both sides of TLS, or the CA's may not sign for both; have it issued "
          "with extendedKeyUsage serverAuth and clientAuth, or without that extension");
    case X509_V_ERR_EE_KEY_TOO_SMALL:
    case X509_V_ERR_CA_KEY_TOO_SMALL:
    case X509_V_ERR_CA_MD_TOO_WEAK:
      certificate.refuse(
          "is too weak for this machine's OpenSSL ({}), or the CA's is; have it issued again, "
          "with P-256 keys or RSA keys of 2048 bits or more, and SHA-256",
          text);
    default:
      certificate.refuse(
          "is not signed by {} = \"{}\" ({}; its issuer is {}); name the CA that signed it, "
          "and append the intermediate certificates to the certificate's file",
          ca.field, ca.path, text, name_of(X509_get_issuer_name(own)));
  }
}

/// Checks the certificate in the same way as both sides of a handshake will.
void require_signed(const Named& certificate, const Chain& chain, const Named& ca) {
  const Chain authorities = read_certificates(ca);
  const Store store(X509_STORE_new());
  for (int i = 0; i < sk_X509_num(authorities.get()); ++i) {
    X509_STORE_add_cert(store.get(), sk_X509_value(authorities.get(), i));
  }
  const TlsDefaults defaults(SSL_CTX_new(TLS_method()));
  WEFT_CHECK(defaults != nullptr);
  X509* own = sk_X509_value(chain.get(), 0);
  for (const int purpose : {X509_PURPOSE_SSL_SERVER, X509_PURPOSE_SSL_CLIENT}) {
    const StoreContext context(X509_STORE_CTX_new());
    X509_STORE_CTX_init(context.get(), store.get(), own, chain.get());
    X509_STORE_CTX_set_purpose(context.get(), purpose);
    X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(context.get()),
                                     SSL_CTX_get_security_level(defaults.get()));
    if (X509_verify_cert(context.get()) == 1) continue;
    refuse_chain(certificate, own, ca, X509_STORE_CTX_get_error(context.get()));
  }
  ERR_clear_error();
}

/// Returns the host in the text; "" if the text isn't an address. IPv6 addresses have brackets, and
/// may have a zone.
std::string_view host_of(std::string_view text) {
  const bool brackets = text.starts_with('[') && text.ends_with(']');
  if (brackets) text = text.substr(1, text.size() - 2);
  const bool ipv6 = text.find(':') != text.npos;
  return brackets == ipv6 && text.find_first_of("[]/ ") == text.npos ? text : "";
}

}  // namespace

TlsAddress parse_tls_address(std::string_view text, std::string_view field) {
  const auto colon = text.rfind(':');
  if (colon != text.npos) {
    TlsAddress address{.host = std::string(host_of(text.substr(0, colon)))};
    const std::string_view port = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
    const bool whole = error == std::errc{} && end == port.data() + port.size();
    if (whole && !address.host.empty()) return address;
  }
  fail(Errc::invalid_argument,
       "{} = \"{}\": expected an address and a port of 0 to 65535, such as \"127.0.0.1:0\" or "
       "\"[::1]:0\"",
       field, text);
}

std::string to_string(const TlsAddress& address) {
  const bool ipv6 = address.host.find(':') != std::string::npos;
  return ipv6 ? fmt::format("[{}]:{}", address.host, address.port)
              : fmt::format("{}:{}", address.host, address.port);
}

void require_sound(const TlsConfig& tls) {
  const Named certificate{"backend.tls.certificate", tls.certificate};
  const Named key{"backend.tls.key", tls.key};
  const Named ca{"backend.tls.ca", tls.ca};
  for (const Named* named : {&certificate, &key, &ca}) {
    if (named->path.empty()) {
      named->refuse(
          "is missing; set all of backend.tls.certificate, backend.tls.key and backend.tls.ca, "
          "or none of them");
    }
  }
  const Chain chain = read_certificates(certificate);
  X509* own = sk_X509_value(chain.get(), 0);
  if (X509_cmp_current_time(X509_get0_notAfter(own)) < 0) {
    certificate.refuse("has expired; have it issued again");
  }
  if (X509_cmp_current_time(X509_get0_notBefore(own)) > 0) {
    certificate.refuse("is not valid yet; wait, or correct this machine's clock");
  }
  const Key secret = read_key(key);
  if (X509_check_private_key(own, secret.get()) != 1) {
    key.refuse("is not the key of {} = \"{}\"; name the key of this certificate", certificate.field,
               certificate.path);
  }
  require_signed(certificate, chain, ca);
}

}  // namespace weft
