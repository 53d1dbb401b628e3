/// The `weft` command: launches jobs and looks into them.

#include <cstdio>
#include <exception>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/weft/doctor/doctor.hpp"
#include "tools/weft/export.hpp"
#include "tools/weft/import.hpp"
#include "tools/weft/inspect/inspect.hpp"
#include "tools/weft/launch/launch.hpp"
#include "tools/weft/manual/manual.hpp"
#include "tools/weft/plan.hpp"
#include "tools/weft/rescue.hpp"
#include "tools/weft/sweep.hpp"
#include "transport/memory/utf8.hpp"

int main(int argc, char** argv) {
  CLI::App app{"SPMD training for C++: launches jobs and looks into them."};
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  weft doctor\n"
      "  weft launch -n 4 --chips 4 -- ./train\n"
      "  weft inspect\n\n"
      "What a command takes: weft COMMAND --help");
  int code = 0;
  weft::add_launch(app, code);
  weft::add_inspect(app, code);
  weft::add_plan(app, code);
  weft::add_export(app, code);
  weft::add_import(app, code);
  weft::add_rescue(app, code);
  weft::add_sweep(app, code);
  weft::add_doctor(app, code);
  weft::add_manual(app, code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    constexpr int kUsage = 1;
    return app.exit(e) == 0 ? 0 : kUsage;
  } catch (const std::exception& e) {
    fmt::print(stderr, "weft: {}\n", weft::visible(e.what()));
    return 2;
  }
  return code;
}
