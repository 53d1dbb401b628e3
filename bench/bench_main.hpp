#pragma once
/// The main() that benchmarks share.

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft::bench {

/// Calls parse(argc, argv) for the options, then run(options, command), where `command` is the
/// command line for reports, without the program's folder. Returns run's exit status. If `run`
/// throws an error, writes it to stderr and returns 1.
template <typename Parse, typename Run>
int bench_main(int argc, char** argv, const Parse& parse, const Run& run) {
  const auto options = parse(argc, argv);
  std::vector<std::string> words(argv, argv + argc);
  words[0] = std::filesystem::path(words[0]).filename();
  try {
    return run(options, fmt::format("{}", fmt::join(words, " ")));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", words[0], error.what());
    return 1;
  }
}

}  // namespace weft::bench
