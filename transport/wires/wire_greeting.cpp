#include "transport/wires/wire_greeting.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <exception>

namespace weft {

WireGreeting::WireGreeting(const TlsContext& context, int fd, const WirePreamble& first)
    : dialled_(context.side() == TlsSide::client),
      session_(context, fd),
      events_(dialled_ ? POLLOUT : POLLIN) {
  if (dialled_) sent_ = encode(first);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

WireGreeting::Step WireGreeting::next() const {
  switch (step_) {
    case Step::handshake: return dialled_ ? Step::writing : Step::reading;
    case Step::writing: return dialled_ ? Step::reading : Step::done;
    case Step::reading: return dialled_ ? Step::done : Step::writing;
    case Step::done: break;
  }
  return Step::done;
}

WireGreeting::Progress WireGreeting::settle(TlsProgress progress) {
  switch (progress) {
    case TlsProgress::done: return Progress::done;
    case TlsProgress::wants_read: events_ = POLLIN; return Progress::waiting;
    case TlsProgress::wants_write: events_ = POLLOUT; return Progress::waiting;
    case TlsProgress::ended:
    case TlsProgress::lost: why_ = "the other side closed the connection"; break;
    case TlsProgress::failed: why_ = "the TLS handshake failed: " + session_.why(); break;
  }
  if (progress != TlsProgress::failed && step_ == Step::handshake) why_ += " in the TLS handshake";
  return Progress::failed;
}

bool WireGreeting::check_received(const Check& check) {
  try {
    const WirePreamble answer = check(decode_preamble(received_));
    if (!dialled_) sent_ = encode(answer);
    return true;
  } catch (const std::exception& error) {
    why_ = error.what();
    return false;
  }
}

WireGreeting::Progress WireGreeting::progress(const Check& check) {
  while (step_ != Step::done) {
    TlsProgress progress = TlsProgress::done;
    std::size_t count = 0;
    if (step_ == Step::handshake) {
      progress = session_.handshake();
    } else if (step_ == Step::writing) {
      const std::span<const char> bytes(reinterpret_cast<const char*>(sent_.data()), sent_.size());
      progress = session_.write(bytes.subspan(moved_), count);
    } else {
      const std::span<char> bytes(reinterpret_cast<char*>(received_.data()), received_.size());
      progress = session_.read(bytes.subspan(moved_), count);
    }
    const Progress result = settle(progress);
    if (result != Progress::done) return result;
    moved_ += count;
    if (step_ != Step::handshake && moved_ < kWirePreambleBytes) continue;
    if (step_ == Step::reading && !check_received(check)) return Progress::failed;
    moved_ = 0;
    step_ = next();
  }
  return Progress::done;
}

}  // namespace weft
