#pragma once
/// Parses the command line of a benchmark.

#include <cstdlib>

#include <CLI/CLI.hpp>

namespace weft::bench {

/// Sets the options of `app`. If the arguments ask for help or are wrong, says so and ends the
/// program.
inline void parse_or_exit(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
}

}  // namespace weft::bench
