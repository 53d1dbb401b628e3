#pragma once
/// TlsSession: TLS 1.3 over a connected stream socket. No call waits, raises SIGPIPE, or leaves an
/// entry in OpenSSL's error queue, and the other side can't prolong a call.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct ssl_st;
struct ssl_ctx_st;

namespace weft {

enum class TlsSide : std::uint8_t { server, client };

/// The settings that all sessions of one side share. Thread-safe. Copies share the settings.
class TlsContext {
 public:
  /// Makes a context for TLS 1.3 without tickets. Handshakes fail until the caller has added
  /// credentials to get(): see certificate_context() and secret_context().
  explicit TlsContext(TlsSide side);

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
  foreign_certificate,  ///< certificate of another CA, or not valid for its side of TLS
  outdated_certificate,
};

/// Only one thread may use it at a time.
class TlsSession {
 public:
  /// Takes ownership of `fd`.
  TlsSession(const TlsContext& context, int fd);
  TlsSession(TlsSession&& other) noexcept;
  TlsSession& operator=(TlsSession&& other) noexcept;
  ~TlsSession();

  int fd() const { return fd_; }
  TlsFault fault() const { return fault_; }
  /// Returns the cause of a failure, as OpenSSL's text.
  const std::string& why() const { return why_; }

  TlsProgress handshake();
  /// Reads available bytes. If the result is `done`, `count` is above 0.
  TlsProgress read(std::span<char> into, std::size_t& count);
  /// Returns `done` when at least one byte can be read, without reading it.
  TlsProgress peek();
  /// Writes some of the bytes. The next call must begin with the bytes that were not written.
  TlsProgress write(std::span<const char> bytes, std::size_t& count);
  /// Announces that this side writes no more. Must not be called again after it has returned
  /// `done`.
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
