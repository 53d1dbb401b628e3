#pragma once
/// The options by which an example is laid out on workers and chips.

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <weft/weft.hpp>

namespace examples {

struct Layout {
  int workers = 4;
  int chips = 4;
  std::string topology;

  /// --workers, --chips and --topology; `weft launch` decides over them.
  void add_to(CLI::App& app);
  weft::ScalingConfig scaling() const;
  /// Several workers get a grid by themselves, with the axes ("data", "model") unless `axes` names
  /// two others; one process would get a single axis, so it is given the squarest grid.
  weft::SpmdConfig spmd(const std::vector<std::string>& axes = {}) const;
};

}  // namespace examples
