#pragma once
/// The options of `weft launch`.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace weft {

struct LaunchOptions {
  // Options for the job. They take precedence over the program's own settings.
  std::optional<int> workers{};
  int chips = 0;  ///< per worker; 0: the program decides
  std::string topology{};
  std::string mesh{};
  std::optional<int> max_failures{};
  int min_hosts = 0;  ///< hosts that must remain after a loss; 0: lost hosts aren't replaced
  std::string resume{};
  // Options for the processes.
  std::vector<std::string> environment{};  ///< "NAME=value"
  std::string folder{};                    ///< the folder in which the program starts; "": current
  std::string bind{"none"};
  bool report_bindings = false;
  double timeout_s = 0;  ///< 0: none
  bool dry_run = false;
  std::vector<std::string> hosts{};  ///< the hosts that run the program; empty: this machine
  /// The command that runs a shell's text on a host. With these options, ssh notices within 15 s
  /// that a host is gone.
  std::string via{"ssh -o ServerAliveInterval=5 -o ServerAliveCountMax=3 -o ConnectTimeout=10"};
  // Options for the output.
  bool tag_output = false;
  std::vector<int> only{};
  std::string log_dir{};
  bool timestamps = false;
  bool no_progress = false;
  double steps = 0;  ///< the job's number of steps, to show the remaining time; 0: unknown

  std::vector<std::string> command{};

  /// Returns whether the program's output must be read line by line.
  bool reads_lines() const { return tag_output || timestamps || !only.empty() || !log_dir.empty(); }
};

/// Adds the options for the job.
void add_job_options(CLI::App& launch, LaunchOptions& options);
/// Adds all options to the subcommand.
void add_options(CLI::App& launch, LaunchOptions& options);

/// Throws invalid_argument, naming the option, for values with which no program can run.
void check(const LaunchOptions& options);

/// Returns the variables that the program gets, by name.
std::vector<std::pair<std::string, std::string>> variables_of(const LaunchOptions& options);

/// Returns a shell command line that does what `weft launch` would do.
std::string shell_text(const LaunchOptions& options);

}  // namespace weft
