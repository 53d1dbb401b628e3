#pragma once
/// Describes the commands and options of a program as text, from which completions and man pages
/// are made.

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace weft {

struct OptionText {
  std::vector<std::string> names{};  ///< "-n", "--workers"; for a positional argument, its name
  std::string description{};
  bool is_positional = false;
  std::string value{};                 ///< name of the option's value: "N"; "" for a flag
  std::vector<std::string> choices{};  ///< the only permitted values

  bool takes_folder() const { return value == "FOLDER"; }
};

struct CommandText {
  std::string path{};  ///< "weft launch"
  std::string description{};
  std::string footer{};
  std::vector<OptionText> options{};
  std::vector<CommandText> commands{};

  std::string name() const { return path.substr(path.rfind(' ') + 1); }
};

/// Describes the commands and options of `app` that aren't hidden.
CommandText describe(const CLI::App& app, const std::string& path);

}  // namespace weft
