#include "transport/job/post_socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <weft/tensor/error.hpp>

#include "transport/job/job_folder.hpp"

namespace weft {
namespace {

class Socket {
 public:
  Socket() : fd_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    if (fd_ < 0) fail(Errc::io, "socket: {}", std::strerror(errno));
  }
  ~Socket() { ::close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

/// Returns the control folder of a running job.
std::string folder_of(const std::string& job) {
  for (const std::string& root : control_roots()) {
    if (JobLock::is_held(root, job)) return folder_in(root, job);
  }
  fail(Errc::not_found, "no job {} of this user runs: `weft inspect` lists the jobs", job);
}

void connect_to(const Socket& socket, const std::string& job) {
  const std::string path = post_socket_in(folder_of(job));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() >= sizeof(address.sun_path)) {
    fail(Errc::io, "{} is too long for the path of a socket", path);
  }
  std::ranges::copy(path, address.sun_path);
  if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return;
  }
  if (errno == ENOENT) {
    fail(Errc::version,
         "job {} takes no commands: it starts or ends just now, or its program has an older weft",
         job);
  }
  fail(errno == ECONNREFUSED ? Errc::not_found : Errc::io, "job {} can't be reached by {}: {}", job,
       path, std::strerror(errno));
}

/// Waits until the answer can be read. Returns false if `patience` is over first.
bool wait_readable(const Socket& socket, std::optional<std::chrono::milliseconds> patience) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + patience.value_or(std::chrono::milliseconds(0));
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    constexpr std::chrono::milliseconds kDay{86'400'000};
    const int wait = patience ? static_cast<int>(std::clamp(left, {}, kDay).count()) : -1;
    pollfd readable{.fd = socket.fd(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&readable, 1, wait);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) fail(Errc::io, "poll: {}", std::strerror(errno));
    if (patience && Clock::now() >= end) return false;
  }
}

}  // namespace

std::optional<std::uint64_t> post_command(const std::string& job, const std::string& name,
                                          const nlohmann::json& payload,
                                          std::optional<std::chrono::milliseconds> patience) {
  using Json = nlohmann::json;
  const std::string request = Json{{"name", name}, {"payload", payload}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
  if (request.size() > kPostBytesMax) {
    fail(Errc::invalid_argument, "a command of {} bytes as JSON: expected less than {}",
         request.size(), kPostBytesMax);
  }
  const Socket socket;
  connect_to(socket, job);
  if (::send(socket.fd(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    fail(Errc::io, "job {}: the command can't be sent: {}", job, std::strerror(errno));
  }
  if (!wait_readable(socket, patience)) return {};
  std::string answer(kPostBytesMax, '\0');
  const ssize_t bytes = ::recv(socket.fd(), answer.data(), answer.size(), 0);
  if (bytes <= 0) {
    fail(Errc::peer_lost,
         "job {} ended before it answered: commands.jsonl in its run folder has the commands that "
         "its loops had",
         job);
  }
  answer.resize(static_cast<std::size_t>(bytes));
  const Json json = Json::parse(answer, nullptr, false);
  if (json.is_object() && json.contains("step") && json["step"].is_number_unsigned()) {
    return json["step"].get<std::uint64_t>();
  }
  if (!json.is_object() || !json.contains("error") || !json["error"].is_string() ||
      !json.contains("message") || !json["message"].is_string()) {
    fail(Errc::corrupt, "job {} gave an answer that isn't one: {}", job, answer.substr(0, 200));
  }
  throw Error(parse_errc(json["error"].get<std::string>()), json["message"].get<std::string>());
}

}  // namespace weft
