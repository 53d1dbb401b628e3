/// The `weft` command: launches and inspects jobs.

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "data/files/utf8.hpp"
#include "tools/weft/devices/devices.hpp"
#include "tools/weft/doctor/doctor.hpp"
#include "tools/weft/export.hpp"
#include "tools/weft/hosts/host_part.hpp"
#include "tools/weft/hosts/launch_hosts.hpp"
#include "tools/weft/import.hpp"
#include "tools/weft/inspect/inspect.hpp"
#include "tools/weft/launch/launch.hpp"
#include "tools/weft/manual/manual.hpp"
#include "tools/weft/plan.hpp"
#include "tools/weft/post.hpp"
#include "tools/weft/rescue.hpp"
#include "tools/weft/suggest.hpp"
#include "tools/weft/sweep.hpp"

int main(int argc, char** argv) {
  CLI::App app{"SPMD training for C++: launches jobs and looks into them.", "weft"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "weft " WEFT_VERSION);
  app.footer(
      "Examples:\n"
      "  weft doctor\n"
      "  weft launch -n 4 --chips 4 -- ./train\n"
      "  weft inspect\n"
      "\n"
      "Options of a command: weft COMMAND --help");
  int code = 0;
  weft::add_launch(app, code, weft::launch_on_hosts);
  weft::add_host_part(app, code);
  weft::add_inspect(app, code);
  weft::add_post(app, code);
  weft::add_plan(app, code);
  weft::add_export(app, code);
  weft::add_import(app, code);
  weft::add_rescue(app, code);
  weft::add_sweep(app, code);
  weft::add_doctor(app, code);
  weft::add_devices(app, code);
  weft::add_manual(app, code);
  const std::vector<std::string> words = weft::translated(app, {argv + 1, argv + argc});
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& e) {
    constexpr int kUsage = 1;
    const std::string unknown =
        e.get_exit_code() == 0 ? std::string() : weft::say_unknown(app, words);
    if (unknown.empty()) return app.exit(e) == 0 ? 0 : kUsage;
    fmt::print(stderr, "weft: {}\n", weft::visible(unknown));
    return kUsage;
  } catch (const std::exception& e) {
    fmt::print(stderr, "weft: {}\n", weft::visible(e.what()));
    return 2;
  }
  return code;
}
