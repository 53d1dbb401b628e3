/// weft-page: the server that `weft inspect serve` starts. It is a separate program because an HTTP
/// server needs OpenSSL and Brotli: loading them would more than double the time in which every
/// other weft command starts.

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <weft/tensor/error.hpp>

#include "tools/weft-page/page_server.hpp"
#include "tools/weft/inspect/job.hpp"
#include "tools/weft/inspect/page_feed.hpp"

namespace weft {
namespace {

/// Blocks SIGINT and SIGTERM in all threads, including later threads, so that these signals stay
/// pending until wait() takes them.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  void wait() const {
    int number = 0;
    while (::sigwait(&set_, &number) != 0) {
    }
  }

 private:
  sigset_t set_;
};

/// Returns a server that listens at the port. If the port isn't available, prints the reason and
/// returns null.
std::unique_ptr<PageServer> listen_at(PageFeed& feed, int port) {
  try {
    return std::make_unique<PageServer>(feed, port);
  } catch (const Error& e) {
    fmt::print(stderr, "weft inspect serve: {}\n", e.what());
    return {};
  }
}

int serve(PageFeed& feed, const EndSignals& signals, int port) {
  const std::unique_ptr<PageServer> server = listen_at(feed, port);
  if (!server) return kUsage;
  fmt::print("{}\n", server->url());
  std::fflush(stdout);
  bool ended_by_itself = false;
  std::thread answers([&] {
    ended_by_itself = !server->serve();
    if (ended_by_itself) ::kill(::getpid(), SIGTERM);
  });
  signals.wait();
  server->stop();
  answers.join();
  if (ended_by_itself)
    fmt::print(stderr, "weft inspect serve: the port accepts no more connections\n");
  return ended_by_itself ? kUnreadable : 0;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  CLI::App app{"The server that `weft inspect serve` starts."};
  std::string job;
  int port = 0;
  app.add_option("job", job);
  app.add_option("--port", port)->required();
  CLI11_PARSE(app, argc, argv);
  const weft::EndSignals signals;  // before the feed starts its thread, which inherits the mask
  return weft::with_feed(job, [&](weft::PageFeed& f) { return weft::serve(f, signals, port); });
}
