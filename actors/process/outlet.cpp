#include "actors/process/outlet.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace weft {
namespace {

constexpr std::size_t kFullBytes = 65536;

}  // namespace

void Outlet::write(std::string_view text) {
  rest_ += text;
  flush();
}

void Outlet::flush() {
  std::size_t written = 0;
  while (written < rest_.size()) {
    pollfd room{.fd = fd_, .events = POLLOUT, .revents = 0};
    if (::poll(&room, 1, 0) <= 0) break;
    // If poll() reports room, PIPE_BUF bytes can be written without blocking. O_NONBLOCK would work
    // too, but it would also change the descriptor of other programs that share the open file.
    const std::size_t size = std::min<std::size_t>(rest_.size() - written, PIPE_BUF);
    const ssize_t count = ::write(fd_, rest_.data() + written, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) return drop();  // the other end is closed
    written += static_cast<std::size_t>(count);
  }
  rest_.erase(0, written);
}

bool Outlet::full() const { return rest_.size() >= kFullBytes; }

}  // namespace weft
