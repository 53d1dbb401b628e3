#pragma once
/// TopFrame: computes the screen of `weft inspect top` from a job and from the user's choices.

#include <string>
#include <string_view>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"
#include "inspect/why/why.hpp"

namespace weft {

enum class TopSort { board, state, step, since, came_last };
enum class TopPage { actors, detail, why, mesh };

/// The user's choices on the screen.
struct TopUi {
  TopPage page = TopPage::actors;
  TopSort sort = TopSort::board;
  std::string filter{};       ///< part of a name, a state or an activity that listed actors have
  bool edits_filter = false;  ///< whether keys edit the filter
  int selected = 0;           ///< row in the list
  bool quit = false;
  bool colours = true;
};

struct TopSize {
  int lines = 24;
  int columns = 80;
};

/// A job now (`job`) and a moment ago (`before`). If `before` is null, the use of cores is unknown.
struct TopLook {
  const Snapshot& job;
  const Snapshot* before = nullptr;
  const Why& why;  ///< the actors that it blames are red in the list
};

/// Returns the screen as lines that fit the size. They contain escape sequences only if
/// `ui.colours`.
std::vector<std::string> frame(const TopLook& look, const TopUi& ui, TopSize size);

/// Applies a key: a character, "\x1b[A" and "\x1b[B" for up and down, "\x1b" for back.
void press(TopUi& ui, std::string_view key);

/// Cuts a text without escape sequences to the number of columns.
std::string cut_line(std::string_view text, int columns);

/// Splits the bytes that a terminal has sent into keys.
std::vector<std::string> split_keys(std::string_view bytes);

}  // namespace weft
