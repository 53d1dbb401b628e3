#pragma once
/// Computes the screen of `weft inspect top` of an actor system.

#include <string>
#include <string_view>
#include <vector>

#include "inspect/systems/system_snapshot.hpp"

namespace weft {

/// The user's choices.
struct SystemTopUi {
  int first = 0;         ///< actor at the top of the list
  bool by_rate = false;  ///< the list begins with the actor that begins most functions per second
  bool quit = false;
};

/// Returns at most `lines` lines of at most `columns` columns: the system, its actors with their
/// rates since `before`, and the keys. Limits `ui.first` to the list.
std::vector<std::string> system_frame(const SystemSnapshot& now, const SystemSnapshot& before,
                                      SystemTopUi& ui, int lines, int columns);

/// Applies a key as split_keys() of top_frame.hpp returns it.
void press(SystemTopUi& ui, std::string_view key);

}  // namespace weft
