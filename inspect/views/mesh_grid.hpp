#pragma once
/// The chips of a job as they stand in its mesh.

#include <string>
#include <string_view>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// What is shown of a chip.
struct MeshCell {
  std::string text = "?";
  std::string_view colour{};  ///< see colours.hpp; empty: none
};

/// A heading and a line for each row of the last axis: the other axes' coordinates, then the cell
/// of each chip. Empty where the board has no mesh that fits its chips.
std::vector<std::string> mesh_grid(const Snapshot& job, const std::vector<MeshCell>& by_chip);

/// By chip: a letter for its state.
std::vector<MeshCell> state_cells(const Snapshot& job, bool colours);
/// By chip: its step. Chips behind the latest are coloured.
std::vector<MeshCell> step_cells(const Snapshot& job, bool colours);

}  // namespace weft
