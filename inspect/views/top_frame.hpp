#pragma once
/// The screen of `weft inspect top`, as a pure function of a job and of what its user has chosen.

#include <string>
#include <string_view>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"
#include "inspect/why/why.hpp"

namespace weft {

enum class TopSort { board, state, step, since, came_last };
enum class TopPage { actors, detail, why, mesh };

/// What the user has chosen.
struct TopUi {
  TopPage page = TopPage::actors;
  TopSort sort = TopSort::board;
  std::string filter{};       ///< part of a name, a state or what is done
  bool edits_filter = false;  ///< keys go to the filter
  int selected = 0;           ///< row of the list
  bool quit = false;
  bool colours = true;
};

struct TopSize {
  int lines = 24;
  int columns = 80;
};

/// A job, and how it was a moment ago. Without that, the time of cores is unknown.
struct TopLook {
  const Snapshot& job;
  const Snapshot* before = nullptr;
  const Why& why;  ///< its actors are red on the list
};

/// Lines that fit the size; escape sequences only where `ui.colours`.
std::vector<std::string> frame(const TopLook& look, const TopUi& ui, TopSize size);

/// What a key does: a character, "\x1b[A" and "\x1b[B" for up and down, "\x1b" for back.
void press(TopUi& ui, std::string_view key);

/// The keys in bytes that a terminal has sent.
std::vector<std::string> split_keys(std::string_view bytes);

}  // namespace weft
