#include "tools/weft-page/page_server.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <random>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <httplib.h>

#include <weft/tensor/error.hpp>

#include "inspect/page/document.hpp"
#include "spmd/base/same_secret.hpp"

namespace weft {
namespace {

using Request = httplib::Request;
using Response = httplib::Response;
using Handled = httplib::Server::HandlerResponse;

/// The number of threads; each reader of events occupies one.
constexpr std::size_t kThreads = kEventReadersMax + 8;
constexpr int kReadTimeout_s = 2;

constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

constexpr const char* kTokenMissing =
    "This page needs its token: open the URL that `weft inspect serve` has printed.\n";

/// Makes a token of 128 random bits.
std::string make_token() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", random());
  return token;
}

/// Returns the cookie's value; "" if it is absent.
std::string_view cookie_of(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    const auto end = header.find(';');
    std::string_view pair = header.substr(0, end);
    header.remove_prefix(end == header.npos ? header.size() : end + 1);
    pair.remove_prefix(std::min(pair.find_first_not_of(' '), pair.size()));
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('=')) {
      return pair.substr(name.size() + 1);
    }
  }
  return {};
}

void refuse(Response& response, int status, const std::string& text) {
  response.status = status;
  response.set_content(text, "text/plain; charset=utf-8");
}

/// Sends the text uncompressed. Debian's cpp-httplib would compress a body by Brotli at its highest
/// level, which takes seconds for the events of some chips.
void send(Response& response, std::string text, const char* type) {
  const std::size_t bytes = text.size();
  response.set_content_provider(
      bytes, type,
      [text = std::move(text)](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
        return sink.write(text.data() + offset, length);
      });
}

std::int64_t number_of(const std::string& text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Takes one of the limited places for readers of events, and frees the place when destroyed.
class ReaderPlace {
 public:
  explicit ReaderPlace(std::atomic<int>& taken) : taken_(taken) {
    is_mine_ = taken_.fetch_add(1) < kEventReadersMax;
  }
  ~ReaderPlace() { --taken_; }
  ReaderPlace(const ReaderPlace&) = delete;
  ReaderPlace& operator=(const ReaderPlace&) = delete;
  bool is_mine() const { return is_mine_; }

 private:
  std::atomic<int>& taken_;
  bool is_mine_;
};

}  // namespace

struct PageServer::Parts {
  explicit Parts(PageFeed& feed_of_job) : feed(feed_of_job) {}

  std::string cookie_name() const { return fmt::format("weft_{}", port); }

  Handled check(const Request& request, Response& response) const {
    response.set_header("Content-Security-Policy", kPolicy);
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("Cross-Origin-Resource-Policy", "same-origin");
    response.set_header("Cache-Control", "no-store");
    const std::string host = request.get_header_value("Host");
    if (host != fmt::format("127.0.0.1:{}", port) && host != fmt::format("localhost:{}", port)) {
      refuse(response, 421,
             "This page shows a job on this host: open it by the host name 127.0.0.1.\n");
      return Handled::Handled;
    }
    if (request.method != "GET") {
      response.set_header("Allow", "GET");
      refuse(response, 405, "Only GET: this page changes nothing.\n");
      return Handled::Handled;
    }
    return check_token(request, response);
  }

  Handled check_token(const Request& request, Response& response) const {
    if (request.path == "/" && request.has_param("token")) {
      if (same_secret(request.get_param_value("token"), token)) {
        response.set_header("Set-Cookie", fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict",
                                                      cookie_name(), token));
        response.set_redirect("/");
      } else {
        refuse(response, 403, kTokenMissing);
      }
      return Handled::Handled;
    }
    const std::string cookies = request.get_header_value("Cookie");
    const std::string bearer = request.get_header_value("Authorization");
    if (same_secret(cookie_of(cookies, cookie_name()), token) ||
        same_secret(bearer, "Bearer " + token)) {
      return Handled::Unhandled;
    }
    response.set_header("WWW-Authenticate", "Bearer");
    refuse(response, 401, kTokenMissing);
    return Handled::Handled;
  }

  /// Sends messages until the reader has disconnected.
  void send_events(Response& response) {
    const auto place = std::make_shared<ReaderPlace>(readers);
    if (!place->is_mine()) {
      response.set_header("Retry-After", "2");
      refuse(response, 503, fmt::format("{} readers already follow this job.\n", kEventReadersMax));
      return;
    }
    const auto follower = std::make_shared<PageFeed::Follower>(feed);
    response.set_chunked_content_provider(
        "text/event-stream", [this, place, follower](std::size_t, httplib::DataSink& sink) {
          const std::optional<FeedMessage> message = follower->next();
          if (stops || !sink.is_writable()) return false;
          const std::string text = message ? fmt::format("data: {}\n\n", message->json) : ":\n\n";
          return sink.write(text.data(), text.size());
        });
  }

  void add_routes() {
    const auto file = [this](const char* path, const char* type, std::string content) {
      server.Get(path, [type, content = std::move(content)](const Request&, Response& response) {
        send(response, content, type);
      });
    };
    file("/", "text/html; charset=utf-8", served_page());
    file("/page.css", "text/css; charset=utf-8", std::string(kPageCss));
    file("/page.js", "text/javascript; charset=utf-8", std::string(kPageJs));
    server.Get("/events", [this](const Request&, Response& r) { send_events(r); });
    server.Get("/timeline", [this](const Request& request, Response& response) {
      send(response, feed.timeline(number_of(request.get_param_value("after"))),
           "application/json");
    });
    server.Get("/curves", [this](const Request&, Response& response) {
      send(response, feed.curves(), "application/json");
    });
    server.Get("/stack", [this](const Request& request, Response& response) {
      send(response, feed.stack(request.get_param_value("actor")), "application/json");
    });
    server.Get("/metrics", [this](const Request&, Response& response) {
      send(response, feed.metrics(), "text/plain; version=0.0.4; charset=utf-8");
    });
  }

  PageFeed& feed;
  httplib::Server server;
  int port = 0;
  std::string token = make_token();
  std::atomic<int> readers{0};
  std::atomic<bool> stops{false};
  std::atomic<bool> has_ended{false};
};

PageServer::PageServer(PageFeed& feed, int port) : parts_(std::make_unique<Parts>(feed)) {
  httplib::Server& server = parts_->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_tcp_nodelay(true);
  // With the library's default options, another server could listen on the same port.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  // Each connection serves one request, because an idle connection would occupy a thread.
  server.set_keep_alive_max_count(1);
  server.set_read_timeout(kReadTimeout_s);
  server.set_pre_routing_handler(
      [parts = parts_.get()](const Request& request, Response& response) {
        return parts->check(request, response);
      });
  parts_->add_routes();
  const bool any = port == 0;
  if (any) port = server.bind_to_any_port("127.0.0.1");
  if (port <= 0 || (!any && !server.bind_to_port("127.0.0.1", port))) {
    fail(Errc::io, "can't listen on port {} of 127.0.0.1: --port 0 takes any free port", port);
  }
  parts_->port = port;
}

PageServer::~PageServer() = default;

std::string PageServer::url() const {
  return fmt::format("http://127.0.0.1:{}/?token={}", parts_->port, parts_->token);
}

bool PageServer::serve() {
  parts_->server.listen_after_bind();
  parts_->has_ended = true;
  return parts_->stops;
}

/// Waits until the server listens or has ended, because a server that doesn't listen yet would
/// ignore stop(). Then stops it.
void PageServer::stop() {
  parts_->stops = true;
  while (!parts_->server.is_running() && !parts_->has_ended) std::this_thread::yield();
  parts_->server.stop();
}

}  // namespace weft
