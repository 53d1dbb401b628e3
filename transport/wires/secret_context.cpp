#include "transport/wires/secret_context.hpp"

#include <array>
#include <memory>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr std::string_view kIdentity = "weft";
/// The suites of TLS 1.3 that use the same hash as the session's suite.
constexpr const char* kSuites = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
constexpr std::array<unsigned char, 2> kSessionSuite{0x13, 0x01};  // TLS_AES_128_GCM_SHA256

void free_session(void*, void* session, CRYPTO_EX_DATA*, int, long, void*) {
  SSL_SESSION_free(static_cast<SSL_SESSION*>(session));
}

/// Returns the index at which a context stores its session, which contains the pre-shared key.
int session_index() {
  static const int index =
      CRYPTO_get_ex_new_index(CRYPTO_EX_INDEX_SSL_CTX, 0, nullptr, nullptr, nullptr, free_session);
  return index;
}

SSL_SESSION* session_of(SSL* ssl) {
  auto* session =
      static_cast<SSL_SESSION*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), session_index()));
  SSL_SESSION_up_ref(session);  // because OpenSSL frees the result of a callback
  return session;
}

/// Offers the key, unless the other side has asked for a suite with another hash than the key's.
/// `hash` is null if the other side hasn't asked yet.
int use_session(SSL* ssl, const EVP_MD* hash, const unsigned char** identity, std::size_t* size,
                SSL_SESSION** session) {
  *session = nullptr;
  if (hash != nullptr && EVP_MD_get_type(hash) != EVP_MD_get_type(EVP_sha256())) return 1;
  *session = session_of(ssl);
  *identity = reinterpret_cast<const unsigned char*>(kIdentity.data());
  *size = kIdentity.size();
  return 1;
}

int find_session(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session) {
  const std::string_view offered(reinterpret_cast<const char*>(identity), size);
  *session = offered == kIdentity ? session_of(ssl) : nullptr;
  return 1;
}

}  // namespace

TlsContext secret_context(std::string_view secret, std::string_view purpose, TlsSide side) {
  std::array<unsigned char, 32> key;
  unsigned size = 0;
  WEFT_CHECK(HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                  reinterpret_cast<const unsigned char*>(purpose.data()), purpose.size(),
                  key.data(), &size) != nullptr &&
             size == key.size());
  TlsContext made(side);
  SSL_CTX* context = made.get();
  WEFT_CHECK(SSL_CTX_set_ciphersuites(context, kSuites) == 1);
  const std::unique_ptr<SSL, void (*)(SSL*)> ssl(SSL_new(context), SSL_free);
  SSL_SESSION* session = SSL_SESSION_new();
  WEFT_CHECK(ssl != nullptr && session != nullptr);
  WEFT_CHECK(SSL_SESSION_set1_master_key(session, key.data(), key.size()) == 1 &&
             SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl.get(), kSessionSuite.data())) ==
                 1 &&
             SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1 &&
             SSL_CTX_set_ex_data(context, session_index(), session) == 1);
  if (side == TlsSide::server) {
    // OpenSSL requires an id from a server that verifies its peers.
    const auto* id = reinterpret_cast<const unsigned char*>(kIdentity.data());
    WEFT_CHECK(SSL_CTX_set_session_id_context(context, id, kIdentity.size()) == 1);
    SSL_CTX_set_psk_find_session_callback(context, find_session);
  } else {
    SSL_CTX_set_psk_use_session_callback(context, use_session);
  }
  OPENSSL_cleanse(key.data(), key.size());
  ERR_clear_error();
  return made;
}

}  // namespace weft
