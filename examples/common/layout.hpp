#pragma once
/// Defines the options that lay an example out on workers and chips.

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <weft/weft.hpp>

namespace examples {

struct Layout {
  int workers = 4;
  int chips = 4;
  std::string topology;

  /// Adds --workers, --chips and --topology. `weft launch` overrides them.
  void add_to(CLI::App& app);
  weft::ScalingConfig scaling() const;
  /// Returns the mesh's configuration. Several workers get a grid by default, with the axes
  /// ("data", "model") unless `axes` has two other names. One process would get a single axis by
  /// default, so this function then requests the squarest grid.
  weft::SpmdConfig spmd(const std::vector<std::string>& axes = {}) const;
};

}  // namespace examples
