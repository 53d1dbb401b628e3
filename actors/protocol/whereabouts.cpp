#include "actors/protocol/whereabouts.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "inspect/why/job_ends.hpp"

namespace weft {
namespace {

/// Returns a collective's name with its number: "all_reduce #812 'x'" for "all_reduce 'x'".
std::string numbered(const ActorRow& row) {
  const auto space = row.collective_name.find(' ');
  const std::string kind = row.collective_name.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : row.collective_name.substr(space);
  return fmt::format("{} #{}{}", kind, row.collective, rest);
}

/// Reads a file of the process in /proc. Returns "" if the process has ended. It doesn't use
/// iterators, because they throw if the process ends between opening and reading.
std::string read_of_process(int pid, const char* name) {
  std::ostringstream text;
  text << std::ifstream(fmt::format("/proc/{}/{}", pid, name)).rdbuf();
  return text.str();
}

}  // namespace

std::optional<Failure> with_worker_apart(std::optional<Failure> failure,
                                         std::span<const ActorRow> rows) {
  if (!failure || failure->code != Errc::program_divergence) return failure;
  const std::optional<int> apart = find_worker_apart(rows);
  if (!apart) return failure;
  for (const ActorRow& row : rows) {
    if (row.kind != ActorKind::worker || row.worker != *apart) continue;
    failure->worker = row.worker;
    failure->pid = row.pid;
    failure->step = row.step;
  }
  return failure;
}

Whereabouts locate(const Board& board, int worker) {
  Whereabouts where;
  for (const ActorRow& row : board.readable_rows()) {
    if (row.worker != worker || row.kind == ActorKind::trainer) continue;
    // The loop is ahead of its chips, so the step is taken from the chip in the collective.
    if (row.in_collective) return {.step = row.step, .collective = numbered(row)};
    where.step = std::max(where.step, row.step);
  }
  return where;
}

std::optional<int> find_awaited(std::span<const ActorRow> rows, int worker) {
  std::map<int, const ActorRow*> chips;
  const ActorRow* at = nullptr;
  for (const ActorRow& row : rows) {
    if (row.kind != ActorKind::device) continue;
    chips.emplace(row.chip, &row);
    if (row.worker == worker && row.waiting_for >= 0) at = &row;
  }
  for (std::size_t hops = 0; at != nullptr && hops < chips.size(); ++hops) {
    const auto next = chips.find(at->waiting_for);
    if (next == chips.end()) break;
    at = next->second;
  }
  if (at == nullptr || at->worker == worker) return {};
  return at->worker;
}

std::string describe_process(int pid) {
  const std::string stat = read_of_process(pid, "stat");
  const auto name_end = stat.rfind(") ");
  switch (name_end == std::string::npos ? '?' : stat[name_end + 2]) {
    case 'T':
    case 't': return "is stopped";
    case 'R': return "runs, but makes no step";
    case 'D': return "waits for a disk or a device";
    case 'S': break;
    default: return "is gone";
  }
  const std::string call = read_of_process(pid, "wchan");
  return call.empty() || call == "0" ? "sleeps" : fmt::format("sleeps in {}", call);
}

std::uint64_t core_time(int pid) {
  const std::string stat = read_of_process(pid, "stat");
  const auto name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return 0;
  // The fields are the state, ten numbers, and the ticks in user and system mode; see proc(5).
  std::istringstream fields(stat.substr(name_end + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  std::uint64_t user = 0, system = 0;
  fields >> user >> system;
  return user + system;
}

void mark_lost(const Board& board, int worker, std::string_view why) {
  const ActorState state = why.empty() ? ActorState::lost : ActorState::host_lost;
  for (const ActorRow& row : board.readable_rows()) {
    if (row.worker != worker) continue;
    if (row.kind == ActorKind::worker) {
      if (!why.empty()) board.worker(worker).error(why);
      board.worker(worker).state(state);
    }
    if (row.kind == ActorKind::device) board.device(row.chip).state(state);
  }
}

}  // namespace weft
