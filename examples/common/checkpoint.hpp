#pragma once
/// Defines the options by which an example saves checkpoints and continues from them.

#include <string>

#include <CLI/CLI.hpp>

#include <weft/weft.hpp>

namespace examples {

struct Checkpointing {
  int every = 0;
  std::string dir;
  std::string resume = "never";

  /// Adds the options --checkpoint-every, --checkpoint-dir and --resume.
  void add_to(CLI::App& app);
  weft::CheckpointConfig config() const;
};

}  // namespace examples
