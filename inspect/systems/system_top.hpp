#pragma once
/// SystemTop: the screen of `weft inspect top` for an actor system.

#include <string>
#include <string_view>
#include <vector>

#include "inspect/systems/system_snapshot.hpp"

namespace weft {

/// The user's choices on the screen.
struct SystemTopUi {
  int first = 0;         ///< index of the actor at the top of the list
  bool by_rate = false;  ///< whether actors that begin more functions per second come first
  bool quit = false;
};

/// Returns the screen, at most `lines` lines of at most `columns` columns: the system, its actors
/// with their rates since `before`, and the keys. Limits `ui.first` to the list.
std::vector<std::string> system_frame(const SystemSnapshot& now, const SystemSnapshot& before,
                                      SystemTopUi& ui, int lines, int columns);

/// Applies a key that split_keys() of top_frame.hpp returned.
void press(SystemTopUi& ui, std::string_view key);

}  // namespace weft
