#include "tools/weft/launch/job_watch.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <weft/tensor/error.hpp>

#include "inspect/snapshot/progress_file.hpp"

namespace weft {
namespace {

/// The maximum number of shells and wrappers between the program and its trainer.
constexpr int kParentsMax = 16;

/// Returns the parent of a process; 0 if there is none or if it can't be read.
pid_t parent_of(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(in, text);
  const auto name_end = text.rfind(')');  // a name may contain blanks and parentheses
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

}  // namespace

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
      // The board can't be read now, because its job is just beginning or ending.
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
  glance.loss = loss_of(read_last_metrics(header.run_dir));
  return glance;
}

}  // namespace weft
