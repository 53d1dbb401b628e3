#include "inspect/systems/system_top.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "data/files/utf8.hpp"
#include "inspect/systems/system_views.hpp"
#include "inspect/views/columns.hpp"
#include "inspect/views/top_frame.hpp"

namespace weft {
namespace {

constexpr const char* kKeys = "up and down: scroll   s: sort by rate   q: quit";

/// Returns how many functions the actor has begun per second; 0 if it was made since `before`.
double rate_of(const SystemSnapshot& now, const SystemSnapshot& before, std::uint32_t row) {
  const double seconds = static_cast<double>(now.at_ns - before.at_ns) * 1e-9;
  if (row >= before.actors.size() || seconds <= 0) return 0;
  const std::uint64_t begun = before.actors[row].begun;
  if (now.actors[row].begun < begun) return 0;
  return static_cast<double>(now.actors[row].begun - begun) / seconds;
}

}  // namespace

std::vector<std::string> system_frame(const SystemSnapshot& now, const SystemSnapshot& before,
                                      SystemTopUi& ui, int lines, int columns) {
  std::vector<std::uint32_t> rows(now.actors.size());
  std::iota(rows.begin(), rows.end(), 0U);
  std::erase_if(rows, [&](std::uint32_t row) { return !now.actors[row].exists(); });
  const auto rate = [&](std::uint32_t row) { return rate_of(now, before, row); };
  if (ui.by_rate) std::ranges::stable_sort(rows, std::greater<>(), rate);
  // The lines that remain without those of the system, the heading and the keys.
  const int room = std::max(lines - 3, 1);
  const int last = std::max(static_cast<int>(rows.size()) - room, 0);
  ui.first = std::clamp(ui.first, 0, last);
  Table table({columns::kActor, columns::kPid, columns::kBegunRate, columns::kUnread,
               columns::kRestarts, columns::kDoing});
  double all = 0;
  for (const std::uint32_t row : rows) all += rate(row);
  for (int i = ui.first; i < std::min(ui.first + room, static_cast<int>(rows.size())); ++i) {
    const std::uint32_t row = rows[static_cast<std::size_t>(i)];
    const SystemActor& actor = now.actors[row];
    const std::uint32_t incarnation = actor.position.incarnation;
    table.add({now.actor_name(row), std::to_string(now.pid(actor.position.process.slot)),
               fmt::format("{:.0f}", rate(row)), std::to_string(actor.unread),
               std::to_string(incarnation > 0 ? incarnation - 1 : 0), doing_text(now, row)});
  }
  std::vector<std::string> frame{
      cut_line(visible(fmt::format("{}  {}  {}  pid {}  {} actors  {:.0f} functions/s", now.name,
                                   now.id, now.state(), now.pid(0), rows.size(), all)),
               columns)};
  std::istringstream text(table.to_string());
  for (std::string line; std::getline(text, line);) frame.push_back(cut_line(line, columns));
  frame.push_back(cut_line(kKeys, columns));
  return frame;
}

void press(SystemTopUi& ui, std::string_view key) {
  if (key == "q" || key == "\x03") ui.quit = true;
  if (key == "s") ui.by_rate = !ui.by_rate;
  if (key == "\x1b[A" || key == "k") --ui.first;
  if (key == "\x1b[B" || key == "j") ++ui.first;
}

}  // namespace weft
