#pragma once
/// A server that answers HTTP requests on the loopback interface with bytes that a test chooses. An
/// answer may be incomplete.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

namespace weft::testing {

/// Returns an HTTP answer with its Content-Length.
inline std::string http_answer(int status, const std::string& body = "",
                               const std::string& headers = "") {
  return fmt::format("HTTP/1.1 {} Said\r\nConnection: close\r\nContent-Length: {}\r\n{}\r\n{}",
                     status, body.size(), headers, body);
}

class ScriptedServer {
 public:
  /// Returns the bytes of the answer to a request; `before` is the number of earlier requests. The
  /// connection is closed after the answer. Only one thread calls this function.
  using Answer = std::function<std::string(const std::string& request, std::size_t before)>;

  explicit ScriptedServer(Answer answer) : answer_(std::move(answer)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const place = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, place, size) != 0 || ::listen(listener_, 64) != 0 ||
        ::getsockname(listener_, place, &size) != 0) {
      throw std::runtime_error("no server on loopback");
    }
    url_ = fmt::format("http://127.0.0.1:{}", ntohs(address.sin_port));
    thread_ = std::thread([this] { serve(); });
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  ~ScriptedServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }

  const std::string& url() const { return url_; }
  /// Returns all requests with their headers and bodies.
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  /// Returns the first line of each request: "GET /bucket/key?x=1".
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const std::string& request : requests()) {
      lines.push_back(request.substr(0, request.find(" HTTP/")));
    }
    return lines;
  }

 private:
  void serve() {
    for (;;) {
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      const std::string request = read_request(connection);
      if (!request.empty()) {
        std::size_t before = 0;
        {
          const std::lock_guard lock(mutex_);
          before = requests_.size();
          requests_.push_back(request);
        }
        const std::string bytes = answer_(request, before);
        for (std::size_t done = 0; done < bytes.size();) {
          const ssize_t count =
              ::send(connection, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
          if (count <= 0) break;
          done += static_cast<std::size_t>(count);
        }
      }
      ::close(connection);
    }
  }

  static std::string read_request(int connection) {
    std::string text;
    char piece[4096];
    for (std::size_t wanted = std::string::npos; text.size() < wanted;) {
      const ssize_t count = ::recv(connection, piece, sizeof piece, 0);
      if (count <= 0) return text;
      text.append(piece, static_cast<std::size_t>(count));
      const std::size_t end = text.find("\r\n\r\n");
      if (end == std::string::npos) continue;
      const std::size_t length = text.find("Content-Length: ");
      const std::size_t body = length < end ? std::stoul(text.substr(length + 16)) : 0;
      wanted = end + 4 + body;
    }
    return text;
  }

  const Answer answer_;
  int listener_ = -1;
  std::string url_;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace weft::testing
