#pragma once
/// TlsSession: TLS 1.3 over a connected stream socket. No call waits, raises SIGPIPE or leaves an
/// entry in OpenSSL's error queue, and no call takes longer because of what the other side sends.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct ssl_st;
struct ssl_ctx_st;

namespace weft {

enum class TlsSide : std::uint8_t { server, client };

/// The settings that all sessions of a server or a client share. Copies of a context share them
/// too. Thread-safe.
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
  ended,        ///< the other side has announced that it sends no more
  lost,         ///< the socket was closed without an announcement
  failed,       ///< TLS has failed: see fault() and why()
};

enum class TlsFault : std::uint8_t {
  none,
  protocol,             ///< the bytes aren't TLS 1.3, or are an alert
  no_certificate,       ///< the other side has no certificate
  foreign_certificate,  ///< it is of another CA, or isn't valid for the other side's role
  outdated_certificate,
};

/// Only one thread may use a session at a time.
class TlsSession {
 public:
  /// Takes ownership of `fd`.
  TlsSession(const TlsContext& context, int fd);
  TlsSession(TlsSession&& other) noexcept;
  TlsSession& operator=(TlsSession&& other) noexcept;
  ~TlsSession();

  int fd() const { return fd_; }
  TlsFault fault() const { return fault_; }
  /// Returns OpenSSL's text about the cause of a failure.
  const std::string& why() const { return why_; }

  TlsProgress handshake();
  /// Reads bytes that are available, and sets `count` to their number, which is above 0 for `done`.
  TlsProgress read(std::span<char> into, std::size_t& count);
  /// Returns `done` when at least one byte can be read, without reading it.
  TlsProgress peek();
  /// Writes some of the bytes, and sets `count` to their number. The next call must begin with the
  /// first byte that wasn't written.
  TlsProgress write(std::span<const char> bytes, std::size_t& count);
  /// Announces that this side sends no more. Must not be called again after it has returned `done`.
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
