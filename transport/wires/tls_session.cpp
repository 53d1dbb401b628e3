#include "transport/wires/tls_session.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

// OpenSSL's own socket BIO isn't used, because it calls write(), which raises SIGPIPE in the user's
// process.

int fd_of(BIO* bio) { return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))); }

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

int socket_write(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t count =
      ::send(fd_of(bio), bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count < 0 && would_wait()) BIO_set_retry_write(bio);
  return static_cast<int>(count);
}

int socket_read(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t count = ::recv(fd_of(bio), bytes, static_cast<std::size_t>(size), MSG_DONTWAIT);
  if (count < 0 && would_wait()) BIO_set_retry_read(bio);
  return static_cast<int>(count);
}

long socket_control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

int socket_create(BIO* bio) {
  BIO_set_init(bio, 1);
  return 1;
}

const BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "weft socket");
    WEFT_CHECK(made != nullptr);
    BIO_meth_set_write(made, socket_write);
    BIO_meth_set_read(made, socket_read);
    BIO_meth_set_ctrl(made, socket_control);
    BIO_meth_set_create(made, socket_create);
    return made;
  }();
  return method;
}

/// Corrects the result of a write: OpenSSL reports an orderly end if the socket takes no more bytes
/// after the other side's close_notify, but the connection is lost then.
TlsProgress of_writing(TlsProgress progress) {
  return progress == TlsProgress::ended ? TlsProgress::lost : progress;
}

std::string last_error() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason != nullptr ? reason : "an unknown error";
}

}  // namespace

TlsContext::TlsContext(TlsSide side) : side_(side) {
  context_ = {SSL_CTX_new(side == TlsSide::server ? TLS_server_method() : TLS_client_method()),
              SSL_CTX_free};
  SSL_CTX* context = context_.get();
  WEFT_CHECK(context != nullptr);
  // No certificate is accepted until the context has a CA.
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // With AUTO_RETRY, one read would continue through any number of records without application
  // data, such as key updates.
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  // A resumed session would skip the check of the certificates.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  // Both limits are set, because the machine's openssl.cnf may set others.
  WEFT_CHECK(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
             SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1);
  ERR_clear_error();
}

void TlsSession::Free::operator()(ssl_st* session) const { SSL_free(session); }

TlsSession::TlsSession(const TlsContext& context, int fd)
    : session_(SSL_new(context.get())), fd_(fd) {
  BIO* bio = BIO_new(socket_method());
  WEFT_CHECK(session_ != nullptr && bio != nullptr);
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  SSL_set_bio(session_.get(), bio, bio);
  if (context.side() == TlsSide::server) {
    SSL_set_accept_state(session_.get());
  } else {
    SSL_set_connect_state(session_.get());
  }
}

TlsSession::TlsSession(TlsSession&& other) noexcept
    : session_(std::move(other.session_)),
      fd_(std::exchange(other.fd_, -1)),
      fault_(other.fault_),
      why_(std::move(other.why_)) {}

TlsSession& TlsSession::operator=(TlsSession&& other) noexcept {
  session_.swap(other.session_);
  std::swap(fd_, other.fd_);
  std::swap(fault_, other.fault_);
  why_.swap(other.why_);
  return *this;
}

TlsSession::~TlsSession() {
  if (fd_ >= 0) ::close(fd_);
}

TlsProgress TlsSession::handshake() {
  ERR_clear_error();
  return progress(SSL_do_handshake(session_.get()));
}

TlsProgress TlsSession::read(std::span<char> into, std::size_t& count) {
  ERR_clear_error();
  count = 0;
  return progress(SSL_read_ex(session_.get(), into.data(), into.size(), &count));
}

TlsProgress TlsSession::peek() {
  ERR_clear_error();
  char byte;
  std::size_t count = 0;
  return progress(SSL_peek_ex(session_.get(), &byte, 1, &count));
}

TlsProgress TlsSession::write(std::span<const char> bytes, std::size_t& count) {
  ERR_clear_error();
  count = 0;
  return of_writing(progress(SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &count)));
}

TlsProgress TlsSession::end_writing() {
  ERR_clear_error();
  const int result = SSL_shutdown(session_.get());
  if (result < 0) return of_writing(progress(result));
  ERR_clear_error();
  return TlsProgress::done;
}

TlsProgress TlsSession::progress(int result) {
  if (result > 0) return TlsProgress::done;
  switch (SSL_get_error(session_.get(), result)) {
    case SSL_ERROR_WANT_READ: return TlsProgress::wants_read;
    case SSL_ERROR_WANT_WRITE: return TlsProgress::wants_write;
    case SSL_ERROR_ZERO_RETURN: return TlsProgress::ended;
    case SSL_ERROR_SYSCALL: ERR_clear_error(); return TlsProgress::lost;
    default: note_fault(); return TlsProgress::failed;
  }
}

void TlsSession::note_fault() {
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  fault_ = TlsFault::protocol;
  why_ = last_error();
  if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) fault_ = TlsFault::no_certificate;
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    const long verdict = SSL_get_verify_result(session_.get());
    const bool outdated =
        verdict == X509_V_ERR_CERT_HAS_EXPIRED || verdict == X509_V_ERR_CERT_NOT_YET_VALID;
    fault_ = outdated ? TlsFault::outdated_certificate : TlsFault::foreign_certificate;
    why_ = X509_verify_cert_error_string(verdict);
  }
  ERR_clear_error();
}

}  // namespace weft
