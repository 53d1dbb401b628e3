#include "actors/link/certificate_context.hpp"

#include <string>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <weft/tensor/error.hpp>

namespace weft {

TlsContext certificate_context(const TlsConfig& tls, TlsSide side) {
  require_sound(tls);
  TlsContext made(side);
  SSL_CTX* context = made.get();
  if (SSL_CTX_use_certificate_chain_file(context, tls.certificate.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, tls.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1 ||
      SSL_CTX_load_verify_locations(context, tls.ca.c_str(), nullptr) != 1) {
    const char* reason = ERR_reason_error_string(ERR_peek_last_error());
    const std::string why = reason != nullptr ? reason : "an unknown error";
    ERR_clear_error();
    fail(Errc::invalid_argument,
         "backend.tls: OpenSSL doesn't accept {}, {} and {} together: {}; have the certificate "
         "issued again",
         tls.certificate, tls.key, tls.ca, why);
  }
  ERR_clear_error();
  return made;
}

}  // namespace weft
