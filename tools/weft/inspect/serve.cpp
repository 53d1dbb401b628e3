#include "tools/weft/inspect/serve.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "data/remote/output_file.hpp"
#include "inspect/page/document.hpp"
#include "tools/weft/inspect/job.hpp"
#include "tools/weft/inspect/page_feed.hpp"
#include "tools/weft/inspect/systems.hpp"

namespace weft {
namespace {

struct ServeOptions {
  std::string job;
  int port = 0;
  std::string file;
};

int export_page(PageFeed& feed, const std::string& file) {
  const std::string page = exported_page(feed.all());
  OutputFile output(file);
  output.write(std::as_bytes(std::span(page)));
  output.finish();
  return 0;
}

/// Replaces this program by weft-page, which is in the same folder (exec). Returns only if
/// weft-page can't be run.
int become_server(const ServeOptions& options) {
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe").replace_filename("weft-page");
  const std::string port = std::to_string(options.port);
  ::execl(program.c_str(), program.c_str(), "--port", port.c_str(), "--", options.job.c_str(),
          nullptr);
  fmt::print(stderr, "weft inspect serve: can't run {}, which is installed beside weft: {}\n",
             program, std::strerror(errno));
  return kUnreadable;
}

}  // namespace

void add_inspect_serve(CLI::App& inspect, int& code) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command = inspect.add_subcommand("serve",
                                             "serve the page of a job or an actor system to "
                                             "browsers on this host: prints its URL, ends on "
                                             "SIGINT");
  command->add_option("job", options->job, kJobOrSystemHelp);
  command->add_option("--port", options->port, "port of 127.0.0.1; 0: any free port")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->add_option("--export", options->file, "write the page to this file, and end")
      ->type_name("FILE");
  command->callback([options, &code] {
    code = options->file.empty() ? become_server(*options)
                                 : with_feed(options->job, [&](PageFeed& feed) {
                                     return export_page(feed, options->file);
                                   });
  });
}

}  // namespace weft
