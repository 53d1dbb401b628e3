#pragma once
/// TLS 1.3 over a connected stream socket, between two sides with certificates of one CA. No call
/// waits, raises SIGPIPE, can be prolonged by the other side, or leaves an entry in OpenSSL's error
/// queue.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <weft/tls.hpp>

struct ssl_st;
struct ssl_ctx_st;

namespace weft {

enum class TlsSide : std::uint8_t { server, client };

/// The files of a TlsConfig, read once. Thread-safe; copies share.
class TlsContext {
 public:
  /// Throws as require_sound() does.
  TlsContext(const TlsConfig& tls, TlsSide side);

  TlsSide side() const { return side_; }
  ssl_ctx_st* get() const { return context_.get(); }

 private:
  std::shared_ptr<ssl_ctx_st> context_;
  TlsSide side_;
};

/// The outcome of a call.
enum class TlsProgress : std::uint8_t {
  done,
  wants_read,   ///< call again when the socket is readable
  wants_write,  ///< call again when the socket is writable
  ended,        ///< the other side has announced that it writes no more
  lost,         ///< the socket was closed without an announcement
  failed,       ///< TLS has failed: see fault() and why()
};

enum class TlsFault : std::uint8_t {
  none,
  protocol,             ///< the bytes aren't TLS 1.3, or are an alert
  no_certificate,       ///< the other side has no certificate
  foreign_certificate,  ///< not of the CA, or not valid for this side of TLS
  outdated_certificate,
};

/// Used by one thread at a time.
class TlsSession {
 public:
  /// Takes ownership of `fd`.
  TlsSession(const TlsContext& context, int fd);
  TlsSession(TlsSession&& other) noexcept;
  TlsSession& operator=(TlsSession&& other) noexcept;
  ~TlsSession();

  int fd() const { return fd_; }
  TlsFault fault() const { return fault_; }
  /// The cause of a failure, in OpenSSL's words.
  const std::string& why() const { return why_; }

  TlsProgress handshake();
  /// `count` is above 0 if the result is `done`.
  TlsProgress read(std::span<char> into, std::size_t& count);
  /// `done` as soon as at least one byte was read.
  TlsProgress peek();
  /// Writes some of the bytes. The next call must begin with the bytes that were not written.
  TlsProgress write(std::span<const char> bytes, std::size_t& count);
  /// Announces that this side writes no more. Must not be called again once `done`.
  TlsProgress end_writing();

 private:
  TlsProgress progress(int result);
  void note_fault();

  struct Free {
    void operator()(ssl_st* session) const;
  };
  std::unique_ptr<ssl_st, Free> session_;
  int fd_;
  TlsFault fault_ = TlsFault::none;
  std::string why_;
};

}  // namespace weft
