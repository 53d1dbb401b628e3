#include <weft/actors/tls.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <weft/spmd/error.hpp>

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
using StoreContext = std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>>;

void free_chain(STACK_OF(X509) * chain) { sk_X509_pop_free(chain, X509_free); }
using Chain = std::unique_ptr<STACK_OF(X509), Freed<free_chain>>;

/// A file that a field names, and how to say what is wrong with it.
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
    File file(std::fopen(path.c_str(), "re"));
    if (!file) refuse("can't be read: {}; name a PEM file of this user", std::strerror(errno));
    return file;
  }
};

/// An encrypted key is refused, not asked about at the terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

Chain read_certificates(const Named& named) {
  const File file = named.open();
  Chain chain(sk_X509_new_null());
  while (X509* certificate = PEM_read_X509(file.get(), nullptr, no_passphrase, nullptr)) {
    sk_X509_push(chain.get(), certificate);
  }
  ERR_clear_error();
  if (sk_X509_num(chain.get()) == 0) {
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
  if (!key) named.refuse("has no key in it that needs no passphrase; expected PEM, decrypted");
  return key;
}

/// "CN = trainer".
std::string name_of(X509_NAME* name) {
  char text[256];
  return X509_NAME_oneline(name, text, sizeof text) != nullptr ? text : "?";
}

void require_signed(const Named& certificate, const Chain& chain, const Named& ca) {
  const Chain authorities = read_certificates(ca);
  const Store store(X509_STORE_new());
  for (int i = 0; i < sk_X509_num(authorities.get()); ++i) {
    X509_STORE_add_cert(store.get(), sk_X509_value(authorities.get(), i));
  }
  X509* own = sk_X509_value(chain.get(), 0);
  const StoreContext context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), own, chain.get());
  if (X509_verify_cert(context.get()) == 1) return ERR_clear_error();
  const int why = X509_STORE_CTX_get_error(context.get());
  if (why == X509_V_ERR_CERT_HAS_EXPIRED || why == X509_V_ERR_CERT_NOT_YET_VALID) {
    certificate.refuse("is not valid today ({}), or the CA's is not; have it issued again",
                       X509_verify_cert_error_string(why));
  }
  certificate.refuse(
      "is not signed by {} = \"{}\" ({}; its issuer is {}); name the CA that has, and "
      "put what is between them behind the certificate",
      ca.field, ca.path, X509_verify_cert_error_string(why), name_of(X509_get_issuer_name(own)));
}

}  // namespace

TlsAddress parse_tls_address(std::string_view text, std::string_view field) {
  const auto colon = text.rfind(':');
  TlsAddress address;
  if (colon != text.npos && colon != 0) {
    const std::string_view port = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
    address.host = text.substr(0, colon);
    const bool plain = address.host.find_first_of(":/ ") == std::string::npos;
    if (error == std::errc{} && end == port.data() + port.size() && plain) return address;
  }
  fail(Errc::invalid_argument,
       "{} = \"{}\": expected an address and a port of 0 to 65535, such as \"127.0.0.1:0\"", field,
       text);
}

void require_sound(const TlsConfig& tls) {
  const Named certificate{"backend.tls.certificate", tls.certificate};
  const Named key{"backend.tls.key", tls.key};
  const Named ca{"backend.tls.ca", tls.ca};
  for (const Named* named : {&certificate, &key, &ca}) {
    if (named->path.empty()) {
      named->refuse(
          "is missing; TLS takes all of backend.tls.certificate, backend.tls.key and "
          "backend.tls.ca, "
          "or none");
    }
  }
  const Chain chain = read_certificates(certificate);
  X509* own = sk_X509_value(chain.get(), 0);
  if (X509_cmp_current_time(X509_get0_notAfter(own)) < 0) {
    certificate.refuse("has expired; have it issued again");
  }
  if (X509_cmp_current_time(X509_get0_notBefore(own)) > 0) {
    certificate.refuse("is not valid yet; wait, or mend this machine's clock");
  }
  const Key secret = read_key(key);
  if (X509_check_private_key(own, secret.get()) != 1) {
    key.refuse("is not the key of {} = \"{}\"; name the one it was issued for", certificate.field,
               certificate.path);
  }
  require_signed(certificate, chain, ca);
  if (X509_check_purpose(own, X509_PURPOSE_SSL_SERVER, 0) != 1 ||
      X509_check_purpose(own, X509_PURPOSE_SSL_CLIENT, 0) != 1) {
    certificate.refuse(
        "may not be used on both sides of TLS; have it issued with extendedKeyUsage "
        "serverAuth and clientAuth, or without that extension");
  }
}

}  // namespace weft
