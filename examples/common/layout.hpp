#pragma once
/// The command-line options that set an example's number of workers, chips and mesh.

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <weft/weft.hpp>

namespace examples {

struct Layout {
  int workers = 4;
  int chips = 4;
  std::string topology;
  weft::DeviceKind device = weft::DeviceKind::automatic;

  /// Adds --workers, --chips, --topology and --device. `weft launch` overrides them.
  void add_to(CLI::App& app);
  weft::ScalingConfig scaling() const;
  /// Returns the mesh's configuration: a grid with the axes ("data", "model"), or those in `axes`.
  /// Several workers get a grid by default. One process would get a single axis, so this function
  /// requests the squarest grid.
  weft::SpmdConfig spmd(const std::vector<std::string>& axes = {}) const;
};

}  // namespace examples
