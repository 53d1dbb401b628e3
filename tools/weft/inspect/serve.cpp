#include "tools/weft/inspect/serve.hpp"

#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <weft/error.hpp>

#include "tools/weft/inspect/job.hpp"
#include "tools/weft/inspect/serve/page_feed.hpp"
#include "tools/weft/inspect/serve/page_server.hpp"
#include "transport/memory/utf8.hpp"

namespace weft {
namespace {

struct ServeOptions {
  std::string job;
  int port = 0;
  std::string file;
};

/// SIGINT and SIGTERM wait, in all threads that begin later too, until wait() takes one.
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

int export_page(SnapshotReader& reader, const std::string& file) {
  PageFeed feed(std::move(reader));
  errno = 0;
  std::ofstream out(file, std::ios::binary);
  out << exported_page(feed.all());
  if (out.flush()) return 0;
  fmt::print(stderr, "weft inspect serve: can't write {}: {}\n", visible(file),
             std::strerror(errno));
  return kUsage;
}

/// Absent where the port can't be had, which is said.
std::unique_ptr<PageServer> listen_at(PageFeed& feed, int port) {
  try {
    return std::make_unique<PageServer>(feed, port);
  } catch (const Error& e) {
    fmt::print(stderr, "weft inspect serve: {}\n", e.what());
    return {};
  }
}

int serve(SnapshotReader& reader, int port) {
  const EndSignals signals;
  PageFeed feed(std::move(reader));
  const std::unique_ptr<PageServer> server = listen_at(feed, port);
  if (!server) return kUsage;
  fmt::print("{}\n", server->url());
  std::fflush(stdout);
  std::thread answers([&] { server->serve(); });
  signals.wait();
  server->stop();
  answers.join();
  return 0;
}

}  // namespace

void add_inspect_serve(CLI::App& inspect, int& code) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command = inspect.add_subcommand(
      "serve", "a job as a page for a browser of this host: prints its URL, ends with SIGINT");
  command->add_option("job", options->job, kJobHelp);
  command->add_option("--port", options->port, "of 127.0.0.1; 0: any that is free")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->add_option("--export", options->file, "write the page to this file, and end")
      ->type_name("FILE");
  command->callback([options, &code] {
    code = with_job(options->job, [&](SnapshotReader& reader) {
      return options->file.empty() ? serve(reader, options->port)
                                   : export_page(reader, options->file);
    });
  });
}

}  // namespace weft
