#pragma once
/// TLS 1.3 over a connected stream socket, between two sides that have certificates of one CA. No
/// call waits, raises SIGPIPE or goes on for as long as the other side likes, and none leaves
/// anything in OpenSSL's error queue.

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
  /// Throws as require_sound().
  TlsContext(const TlsConfig& tls, TlsSide side);

  TlsSide side() const { return side_; }
  ssl_ctx_st* get() const { return context_.get(); }

 private:
  std::shared_ptr<ssl_ctx_st> context_;
  TlsSide side_;
};

/// What came of a call.
enum class TlsProgress : std::uint8_t {
  done,
  wants_read,   ///< again when the socket is readable
  wants_write,  ///< again when it is writable
  ended,        ///< the other side writes no more, as it has said
  lost,         ///< the socket is closed, without a word of TLS
  failed,       ///< TLS is at an end: fault() and why()
};

enum class TlsFault : std::uint8_t {
  none,
  protocol,             ///< what came isn't TLS 1.3, or is an alert
  no_certificate,       ///< the other side has none
  foreign_certificate,  ///< not of the CA, or not for this side of TLS
  outdated_certificate,
};

/// For one thread at a time.
class TlsSession {
 public:
  /// Owns `fd` from now on.
  TlsSession(const TlsContext& context, int fd);
  TlsSession(TlsSession&& other) noexcept;
  TlsSession& operator=(TlsSession&& other) noexcept;
  ~TlsSession();

  int fd() const { return fd_; }
  TlsFault fault() const { return fault_; }
  /// In OpenSSL's words.
  const std::string& why() const { return why_; }

  TlsProgress handshake();
  /// `count` is above 0 where it is done.
  TlsProgress read(std::span<char> into, std::size_t& count);
  /// Done as soon as there is a byte to read.
  TlsProgress peek();
  /// Takes some of it. What it didn't take has to come first the next time.
  TlsProgress write(std::span<const char> bytes, std::size_t& count);
  /// Says that nothing more will be written; not called again once it is done.
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
