#pragma once
/// What `weft launch` is asked for.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace weft {

struct LaunchOptions {
  // Of the job; they go before what the program asks for.
  std::optional<int> workers{};
  int chips = 0;  ///< per worker; 0: as the program says
  std::string topology{};
  std::string mesh{};
  std::optional<int> max_failures{};
  std::string resume{};
  // Of the processes.
  std::vector<std::string> environment{};  ///< "NAME=value"
  std::string folder{};                    ///< in which the program starts; "": this one
  std::string bind{"none"};
  bool report_bindings = false;
  double timeout_s = 0;  ///< 0: none
  bool dry_run = false;
  // Of the output.
  bool tag_output = false;
  std::vector<int> only{};
  std::string log_dir{};
  bool timestamps = false;
  bool no_progress = false;
  double steps = 0;  ///< that the job is to make, for the time left; 0: not known

  std::vector<std::string> command{};

  /// Whether the program's output is to be read line by line.
  bool reads_lines() const { return tag_output || timestamps || !only.empty() || !log_dir.empty(); }
};

/// Adds those of the job.
void add_job_options(CLI::App& launch, LaunchOptions& options);
/// Adds all of them to the subcommand.
void add_options(CLI::App& launch, LaunchOptions& options);

/// Throws invalid_argument, naming the option, for what no program could run with.
void check(const LaunchOptions& options);

/// The variables that the program gets, by name.
std::vector<std::pair<std::string, std::string>> variables_of(const LaunchOptions& options);

/// The command line that does by a shell what `weft launch` would do.
std::string shell_text(const LaunchOptions& options);

}  // namespace weft
