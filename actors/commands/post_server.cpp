#include "actors/commands/post_server.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "transport/job/post_socket.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

/// The limit on connections that haven't sent their request. When it is exceeded, the oldest one is
/// closed.
constexpr std::size_t kSilentMax = 32;

}  // namespace

/// A connection of a poster. It is closed when the last pointer to it is gone: the server keeps one
/// until the request has come, and the post keeps one until it is answered.
class PostServer::Connection {
 public:
  explicit Connection(int fd) : fd_(fd) {}
  ~Connection() { ::close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const { return fd_; }
  void answer(const CommandPosts::Answer& answer) const {
    const Json json = answer.ok() ? Json{{"step", answer.value()}}
                                  : Json{{"error", to_string(answer.error().code())},
                                         {"message", answer.error().what()}};
    std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    text.resize(std::min(text.size(), kPostBytesMax));
    // An error is ignored: it means that the poster has ended, which changes nothing.
    (void)::send(fd_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

 private:
  int fd_;
};

PostServer::PostServer(const std::string& path, CommandPosts& posts)
    : posts_(posts),
      listener_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const bool fits = path.size() < sizeof(address.sun_path);
  if (fits) std::ranges::copy(path, address.sun_path);
  if (listener_ < 0 || !fits ||
      ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(listener_, static_cast<int>(kSilentMax)) != 0) {
    const int error = fits ? errno : ENAMETOOLONG;
    if (listener_ >= 0) ::close(listener_);
    fail(Errc::io, "can't listen for commands at {}: {}", path, std::strerror(error));
  }
}

PostServer::~PostServer() { ::close(listener_); }

void PostServer::add_to(std::vector<pollfd>& waits) const {
  waits.push_back({.fd = listener_, .events = POLLIN, .revents = 0});
  for (const ConnectionPtr& connection : silent_) {
    waits.push_back({.fd = connection->fd(), .events = POLLIN, .revents = 0});
  }
}

void PostServer::serve(const pollfd* waits) {
  std::vector<ConnectionPtr> silent;
  for (const ConnectionPtr& connection : std::exchange(silent_, {})) {
    if ((++waits)->revents == 0) {
      silent.push_back(connection);
    } else {
      take_request(connection);
    }
  }
  silent_ = std::move(silent);
  accept_all();
}

void PostServer::accept_all() {
  for (;;) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    auto connection = std::make_shared<Connection>(fd);
    ucred peer{};
    socklen_t bytes = sizeof(peer);
    // Other users can't open the socket's folder; this is a second check.
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || peer.uid != ::geteuid()) {
      continue;
    }
    if (silent_.size() == kSilentMax) silent_.erase(silent_.begin());
    silent_.push_back(std::move(connection));
  }
}

void PostServer::take_request(const ConnectionPtr& connection) {
  std::string text(kPostBytesMax, '\0');
  const ssize_t bytes = ::recv(connection->fd(), text.data(), text.size(), MSG_TRUNC);
  if (bytes <= 0) return;  // the poster has ended
  try {
    if (static_cast<std::size_t>(bytes) > text.size()) {
      fail(Errc::invalid_argument, "a request of {} bytes: expected at most {}", bytes,
           text.size());
    }
    text.resize(static_cast<std::size_t>(bytes));
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) {
      fail(Errc::invalid_argument,
           "a request without a name: expected {{\"name\": \"learning_rate\", \"payload\": 0.01}}");
    }
    posts_.post(json["name"].get<std::string>(), json.value("payload", Json()),
                [connection](const CommandPosts::Answer& answer) { connection->answer(answer); });
  } catch (const Error& e) {
    connection->answer(e);
  }
}

}  // namespace weft
