#include "inspect/views/top_frame.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "inspect/views/actor_view.hpp"
#include "inspect/views/mesh_grid.hpp"
#include "transport/memory/utf8.hpp"

namespace weft {
namespace {

constexpr std::string_view kUp = "\x1b[A";
constexpr std::string_view kDown = "\x1b[B";
constexpr std::string_view kEscape = "\x1b";
constexpr const char* kReversed = "\x1b[7m";
constexpr const char* kBold = "\x1b[1m";

/// Of a text without escape sequences, as many columns as there are.
std::string cut(std::string_view text, int columns) {
  std::string kept;
  int width = 0;
  while (!text.empty()) {
    const std::size_t bytes = std::max<std::size_t>(first_character(text).bytes, 1);
    if (width++ == columns) break;
    kept += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return kept;
}

std::string dressed(std::string text, std::string_view code, const TopUi& ui) {
  return ui.colours && !code.empty() ? fmt::format("{}{}{}", code, text, kPlain) : text;
}

bool fits(const ActorView& actor, const std::string& filter) {
  return actor.name.find(filter) != std::string::npos ||
         actor.state.find(filter) != std::string::npos ||
         actor.doing.find(filter) != std::string::npos;
}

/// Worst states first.
int rank_of(char letter) {
  const auto found = std::string_view("X!TDw-r.e").find(letter);
  return found == std::string_view::npos ? 9 : static_cast<int>(found);
}

std::vector<ActorView> chosen(const Snapshot& job, const TopUi& ui) {
  std::vector<ActorView> actors = view_actors(job);
  std::erase_if(actors, [&](const ActorView& actor) { return !fits(actor, ui.filter); });
  std::ranges::stable_sort(actors, [&](const ActorView& a, const ActorView& b) {
    switch (ui.sort) {
      case TopSort::board: return false;
      case TopSort::state: return rank_of(a.letter) < rank_of(b.letter);
      case TopSort::step: return a.step < b.step;
      case TopSort::since: return a.for_s > b.for_s;
    }
    return false;
  });
  return actors;
}

std::string_view name_of(TopSort sort) {
  switch (sort) {
    case TopSort::board: return "board";
    case TopSort::state: return "state";
    case TopSort::step: return "step";
    case TopSort::since: return "for";
  }
  return "";
}

std::string head(const Snapshot& job) {
  const JobView view = view_job(job);
  std::string text = fmt::format("{}  {}  {}", job.header.name, job.job.substr(0, 6), view.state);
  if (view.for_s >= 0) text += " " + for_text(view.for_s);
  return visible(fmt::format("{}  step {}", text, view.step));
}

std::string row_of(const ActorView& actor, bool selected) {
  return visible(fmt::format("{}{:<10} {:<10} {:>7} {:>8} {:>5}  {}", selected ? '>' : ' ',
                             actor.name, actor.state, for_text(actor.for_s), actor.step,
                             actor.mailbox, actor.doing));
}

/// The list scrolls so that the selected row is on the screen.
void add_actors(const Snapshot& job, const TopUi& ui, TopSize size,
                std::vector<std::string>& lines) {
  const std::vector<ActorView> actors = chosen(job, ui);
  const int count = static_cast<int>(actors.size());
  const int room = std::max(1, size.lines - 3);
  const int selected = std::clamp(ui.selected, 0, std::max(0, count - 1));
  const int first = std::max(0, selected - room + 1);
  lines.push_back(dressed(cut(fmt::format(" {:<10} {:<10} {:>7} {:>8} {:>5}  {}", "ACTOR", "STATE",
                                          "FOR", "STEP", "BOX", "DOING"),
                              size.columns),
                          kBold, ui));
  for (int i = first; i < std::min(count, first + room); ++i) {
    const ActorView& actor = actors[static_cast<std::size_t>(i)];
    const bool is_selected = i == selected;
    lines.push_back(dressed(cut(row_of(actor, is_selected), size.columns),
                            is_selected ? kReversed : colour_of(actor.letter), ui));
  }
}

void add_detail(const Snapshot& job, const TopUi& ui, TopSize size,
                std::vector<std::string>& lines) {
  const std::vector<ActorView> actors = chosen(job, ui);
  if (actors.empty()) return;
  const auto index = std::clamp<std::size_t>(static_cast<std::size_t>(std::max(0, ui.selected)), 0,
                                             actors.size() - 1);
  const ActorView& actor = actors[index];
  const auto line = [&](std::string_view label, const std::string& text) {
    lines.push_back(cut(visible(fmt::format("{:<10} {}", label, text)), size.columns));
  };
  line("actor", actor.name);
  line("pid", std::to_string(actor.pid));
  line("state", fmt::format("{} {}", actor.state, for_text(actor.for_s)));
  line("step", std::to_string(actor.step));
  line("mailbox", fmt::format("{}, last message \"{}\"", actor.mailbox, actor.message));
  line("doing", actor.doing);
  if (const ProcessState* process = job.process(actor.pid)) {
    line("process", fmt::format("{}, {} threads", describe(*process), process->threads.size()));
  }
}

void add_text(const std::string& text, TopSize size, std::vector<std::string>& lines) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(cut(line, size.columns));
}

std::string foot(const TopUi& ui) {
  if (ui.edits_filter) return fmt::format("filter: {}_", visible(ui.filter));
  std::string keys = fmt::format("s sort ({})  / filter", name_of(ui.sort));
  if (!ui.filter.empty()) keys += fmt::format(" ({})", visible(ui.filter));
  return keys + "  Enter descend  w why  m mesh  Esc back  q quit";
}

}  // namespace

std::vector<std::string> frame(const Snapshot& job, const Why& why, const TopUi& ui, TopSize size) {
  std::vector<std::string> lines{dressed(cut(head(job), size.columns), kBold, ui)};
  switch (ui.page) {
    case TopPage::actors: add_actors(job, ui, size, lines); break;
    case TopPage::detail: add_detail(job, ui, size, lines); break;
    case TopPage::why: add_text(to_text(why), size, lines); break;
    case TopPage::mesh:
      for (std::string& line : mesh_grid(job, state_cells(job, ui.colours)))
        lines.push_back(std::move(line));
      lines.push_back(cut(kStateLetters, size.columns));
      break;
  }
  const auto room = static_cast<std::size_t>(std::max(1, size.lines - 1));
  if (lines.size() > room) lines.resize(room);
  while (lines.size() < room) lines.emplace_back();
  lines.push_back(cut(foot(ui), size.columns));
  return lines;
}

void press(TopUi& ui, std::string_view key) {
  const bool enter = key == "\r" || key == "\n";
  if (ui.edits_filter) {
    if (enter || key == kEscape) {
      ui.edits_filter = false;
    } else if (key == "\x7f" || key == "\b") {
      if (!ui.filter.empty()) ui.filter.pop_back();
    } else if (key.size() == 1 && key[0] >= ' ') {
      ui.filter += key;
    }
    ui.selected = 0;
    return;
  }
  if (key == "q" || key == "\x03") ui.quit = true;
  if (key == "j" || key == kDown) ++ui.selected;
  if (key == "k" || key == kUp) ui.selected = std::max(0, ui.selected - 1);
  if (key == "s") ui.sort = static_cast<TopSort>((static_cast<int>(ui.sort) + 1) % 4);
  if (key == "/") ui.edits_filter = true;
  if (key == "w") ui.page = TopPage::why;
  if (key == "m") ui.page = TopPage::mesh;
  if (enter && ui.page == TopPage::actors) ui.page = TopPage::detail;
  if (key == kEscape) {
    if (ui.page == TopPage::actors) ui.filter.clear();
    ui.page = TopPage::actors;
  }
}

std::vector<std::string> split_keys(std::string_view bytes) {
  std::vector<std::string> keys;
  while (!bytes.empty()) {
    const bool arrow = bytes.starts_with(kUp) || bytes.starts_with(kDown);
    const std::size_t length = arrow ? kUp.size() : 1;
    keys.emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
  return keys;
}

}  // namespace weft
