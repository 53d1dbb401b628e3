#include "inspect/views/top_frame.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "data/files/utf8.hpp"
#include "inspect/views/actor_view.hpp"
#include "inspect/views/colours.hpp"
#include "inspect/views/columns.hpp"
#include "inspect/views/mesh_grid.hpp"
#include "inspect/why/words.hpp"

namespace weft {
namespace {

constexpr std::string_view kUp = "\x1b[A";
constexpr std::string_view kDown = "\x1b[B";
constexpr std::string_view kEscape = "\x1b";

std::string dressed(std::string text, std::string_view code, const TopUi& ui) {
  return ui.colours && !code.empty() ? fmt::format("{}{}{}", code, text, kPlain) : text;
}

bool fits(const ActorView& actor, const std::string& filter) {
  return actor.name.find(filter) != std::string::npos ||
         actor.state.find(filter) != std::string::npos ||
         actor.doing.find(filter) != std::string::npos;
}

/// Returns a rank by which actors are sorted. The worst states have rank 0.
int rank_of(const ActorView& actor) {
  const std::string_view colour = colour_of(actor.state);
  if (colour == kRed) return 0;
  if (colour == kYellow) return 1;
  return colour == kGreen ? 2 : 3;
}

std::vector<ActorView> chosen(const TopLook& look, const TopUi& ui) {
  std::vector<ActorView> actors = view_actors(look.job, look.before);
  std::erase_if(actors, [&](const ActorView& actor) { return !fits(actor, ui.filter); });
  std::ranges::stable_sort(actors, [&](const ActorView& a, const ActorView& b) {
    switch (ui.sort) {
      case TopSort::board: return false;
      case TopSort::state: return rank_of(a) < rank_of(b);
      case TopSort::step: return a.step < b.step;
      case TopSort::since: return a.for_s > b.for_s;
      case TopSort::came_last: return a.came_last.value_or(-1) > b.came_last.value_or(-1);
    }
    return false;
  });
  return actors;
}

std::string_view name_of(TopSort sort) {
  switch (sort) {
    case TopSort::board: return columns::kActor.heading;
    case TopSort::state: return columns::kState.heading;
    case TopSort::step: return columns::kStep.heading;
    case TopSort::since: return columns::kFor.heading;
    case TopSort::came_last: return columns::kCameLast.heading;
  }
  return "";
}

std::string head(const Snapshot& job, const JobView& view) {
  std::string text = fmt::format("{}  {}  {}", job.header.name, job.job.substr(0, 6), view.state);
  if (view.for_s >= 0) text += " " + for_text(view.for_s);
  text += fmt::format("  step {}", view.step);
  if (view.steps_per_s) text += fmt::format("  {} steps/s", rate_text(view));
  if (view.loss) text += fmt::format("  loss {}", loss_text(view));
  return visible(text);
}

/// Returns the numbers that the loop reported besides the step and the loss; "" if there are none.
std::string reported(const Snapshot& job) {
  std::string text;
  for (const ReportedMetric& metric : job.metrics) {
    if (metric.name == "step" || metric.name == "loss") continue;
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : "  ", metric.name, metric_text(metric.value));
  }
  return visible(text);
}

/// Returns whether the actor is to blame if the job doesn't continue.
bool is_root(const Why& why, const ActorView& actor) {
  if (why.verdict == Verdict::well || why.verdict == Verdict::waits) return false;
  return std::ranges::any_of(why.roots, [&](const Root& root) {
    const bool is_its_worker = actor.chip < 0 && std::ranges::count(root.workers, actor.worker);
    return root.actor == actor.name || is_its_worker;
  });
}

std::vector<std::string> actor_lines(const std::vector<ActorView>& actors) {
  Table table({columns::kActor, columns::kState, columns::kFor, columns::kStep, columns::kCpu,
               columns::kCameLast, columns::kWaits, columns::kUnread, columns::kDoing});
  for (const ActorView& actor : actors) {
    table.add({actor.name, actor.state, for_text(actor.for_s), std::to_string(actor.step),
               cpu_text(actor), came_last_text(actor), waits_text(actor),
               std::to_string(actor.mailbox), actor.doing});
  }
  std::istringstream text(table.to_string());
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(std::move(line));
  return lines;
}

/// Adds the list, scrolled so that the selected row is on the screen.
void add_actors(const TopLook& look, const TopUi& ui, TopSize size,
                std::vector<std::string>& lines) {
  const std::vector<ActorView> actors = chosen(look, ui);
  const std::vector<std::string> rows = actor_lines(actors);
  const int count = static_cast<int>(actors.size());
  const int room = std::max(1, size.lines - 2 - static_cast<int>(lines.size()));
  const int selected = std::clamp(ui.selected, 0, std::max(0, count - 1));
  const int first = std::max(0, selected - room + 1);
  lines.push_back(dressed(cut_line(" " + rows.front(), size.columns), kBold, ui));
  for (int i = first; i < std::min(count, first + room); ++i) {
    const auto index = static_cast<std::size_t>(i);
    const std::string text = cut_line((i == selected ? ">" : " ") + rows[index + 1], size.columns);
    const std::string_view colour =
        is_root(look.why, actors[index]) ? kRed : colour_of(actors[index].state);
    lines.push_back(dressed(dressed(text, colour, ui), i == selected ? kReversed : "", ui));
  }
}

void add_detail(const TopLook& look, const TopUi& ui, TopSize size,
                std::vector<std::string>& lines) {
  const std::vector<ActorView> actors = chosen(look, ui);
  if (actors.empty()) return;
  const auto index = std::clamp<std::size_t>(static_cast<std::size_t>(std::max(0, ui.selected)), 0,
                                             actors.size() - 1);
  const ActorView& actor = actors[index];
  const auto line = [&](std::string_view label, const std::string& text) {
    lines.push_back(cut_line(visible(fmt::format("{:<12} {}", label, text)), size.columns));
  };
  line(columns::kActor.heading, actor.name);
  line(columns::kPid.heading, std::to_string(actor.pid));
  line(columns::kState.heading, fmt::format("{} {}", actor.state, for_text(actor.for_s)));
  line(columns::kStep.heading, std::to_string(actor.step));
  line(columns::kCpu.heading, cpu_text(actor));
  if (actor.chip >= 0) {
    line(columns::kCameLast.heading, came_last_text(actor));
    line(columns::kWaits.heading, waits_text(actor));
  }
  line(columns::kUnread.heading, std::to_string(actor.mailbox));
  line(columns::kMessage.heading, actor.message);
  line(columns::kDoing.heading, actor.doing);
  if (const ProcessState* process =
          look.job.process({look.job.header.host_of(actor.worker), actor.pid})) {
    line("process", fmt::format("{}, {} threads", describe(*process), process->threads.size()));
  }
}

void add_text(const std::string& text, TopSize size, std::vector<std::string>& lines) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(cut_line(line, size.columns));
}

std::string foot(const TopUi& ui) {
  if (ui.edits_filter) return fmt::format("filter: {}_", visible(ui.filter));
  std::string keys = fmt::format("s sort ({})  / filter", name_of(ui.sort));
  if (!ui.filter.empty()) keys += fmt::format(" ({})", visible(ui.filter));
  return keys + "  Enter details  w why  m mesh  Esc back  q quit";
}

}  // namespace

std::string cut_line(std::string_view text, int columns) {
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

std::vector<std::string> frame(const TopLook& look, const TopUi& ui, TopSize size) {
  const JobView view = view_job(look.job);
  std::vector<std::string> lines{dressed(
      dressed(cut_line(head(look.job, view), size.columns), colour_of(view.state), ui), kBold, ui)};
  if (const std::string metrics = reported(look.job); !metrics.empty()) {
    lines.push_back(cut_line(metrics, size.columns));
  }
  for (const HostSight& host : look.job.hosts) {
    if (!host.silence.empty()) lines.push_back(cut_line(silence_text(host), size.columns));
  }
  switch (ui.page) {
    case TopPage::actors: add_actors(look, ui, size, lines); break;
    case TopPage::detail: add_detail(look, ui, size, lines); break;
    case TopPage::why: add_text(to_text(look.why), size, lines); break;
    case TopPage::mesh:
      for (std::string& line : mesh_grid(look.job, state_cells(look.job, ui.colours)))
        lines.push_back(std::move(line));
      lines.push_back(cut_line(kStateLetters, size.columns));
      break;
  }
  const auto room = static_cast<std::size_t>(std::max(1, size.lines - 1));
  if (lines.size() > room) lines.resize(room);
  while (lines.size() < room) lines.emplace_back();
  lines.push_back(cut_line(foot(ui), size.columns));
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
  if (key == "s") ui.sort = static_cast<TopSort>((static_cast<int>(ui.sort) + 1) % 5);
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
