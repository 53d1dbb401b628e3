#pragma once
/// MeshGrid: draws a job's chips as a grid, by their positions in the mesh.

#include <string>
#include <string_view>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// The cell of one chip.
struct MeshCell {
  std::string text = "?";
  std::string_view colour{};  ///< a constant of colours.hpp; "": no color
};

/// Returns a heading, and a line for each row of chips along the last axis. A line has the row's
/// coordinates on the other axes, then the cell of each chip. Returns no lines if the board has no
/// mesh that fits its chips.
std::vector<std::string> mesh_grid(const Snapshot& job, const std::vector<MeshCell>& by_chip);

/// Returns a cell for each chip with a letter for its state.
std::vector<MeshCell> state_cells(const Snapshot& job, bool colours);
/// Returns a cell for each chip with its step. Chips behind the latest step are colored.
std::vector<MeshCell> step_cells(const Snapshot& job, bool colours);

}  // namespace weft
