#include "tools/weft/launch/job_watch.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

#include <weft/error.hpp>

#include "tools/weft/progress_file.hpp"

namespace weft {
namespace {

/// Enough for some rows of as many columns as a run folder has.
constexpr std::streamoff kTailBytes = 16384;
/// Shells and wrappers between the program and its trainer.
constexpr int kParentsMax = 16;

/// 0 where there is none, or it can't be read.
pid_t parent_of(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(in, text);
  const auto name_end = text.rfind(')');  // a name may have blanks and parentheses
  if (name_end == text.npos) return 0;
  std::istringstream rest(text.substr(name_end + 1));
  char state = 0;
  pid_t parent = 0;
  rest >> state >> parent;
  return parent;
}

bool is_in_tree(pid_t pid, pid_t root) {
  for (int i = 0; i < kParentsMax && pid > 1; ++i) {
    if (pid == root) return true;
    pid = parent_of(pid);
  }
  return false;
}

std::vector<std::string_view> fields_of(std::string_view row) {
  std::vector<std::string_view> fields;
  for (;;) {
    const auto comma = row.find(',');
    fields.push_back(row.substr(0, comma));
    if (comma == row.npos) return fields;
    row.remove_prefix(comma + 1);
  }
}

}  // namespace

std::optional<double> last_loss(const std::string& csv) {
  std::string_view text(csv);
  if (text.find('"') != text.npos) return {};  // commas and newlines may be anything
  const auto head_end = text.find('\n');
  const auto end = text.rfind('\n');
  if (head_end == end) return {};
  const auto names = fields_of(text.substr(0, head_end));
  auto column = std::ranges::find(names, "loss");
  if (column == names.end()) {
    column =
        std::ranges::find_if(names, [](std::string_view name) { return name.ends_with("loss"); });
  }
  if (column == names.end()) return {};
  const auto index = static_cast<std::size_t>(column - names.begin());
  const auto row_begin = text.rfind('\n', end - 1) + 1;
  const auto fields = fields_of(text.substr(row_begin, end - row_begin));
  if (index >= fields.size()) return {};
  double value = 0;
  const std::string_view field = fields[index];
  const auto [stop, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc{} || field.empty()) return {};
  return value;
}

bool JobWatch::find() {
  if (board_ && board_->status() <= JobStatus::running) return true;
  board_.reset();
  for (const std::string& job : Board::jobs()) {
    try {
      Board board = Board::open(job, true);
      if (board.status() > JobStatus::running) continue;
      if (!is_in_tree(board.header().trainer_pid, program_)) continue;
      board_.emplace(std::move(board));
      return true;
    } catch (const Error&) {
      // Another job's that is just beginning or ending.
    }
  }
  return false;
}

std::optional<JobGlance> JobWatch::look() {
  if (!find()) return {};
  const BoardHeader& header = board_->header();
  JobGlance glance{.name = header.name, .chips = header.num_chips};
  for (const ActorRow& row : board_->readable_rows()) {
    if (row.kind == ActorKind::worker) glance.step = std::max(glance.step, row.step);
  }
  glance.loss = last_loss(head_and_tail(header.run_dir + "/progress.csv", kTailBytes));
  return glance;
}

}  // namespace weft
