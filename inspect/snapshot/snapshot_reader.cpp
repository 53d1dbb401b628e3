#include "inspect/snapshot/snapshot_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include <weft/tensor/error.hpp>

#include "inspect/snapshot/process_file.hpp"
#include "transport/blackbox/black_box.hpp"
#include "transport/blackbox/box_clock.hpp"
#include "transport/job/control_format.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/job/job_record.hpp"
#include "transport/memory/namespaces.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// Opens a plain file of this user. Returns -1 if there is no such file.
int open_own(const std::string& path) {
  const int descriptor =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  struct stat status {};
  if (descriptor < 0) return -1;
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
      status.st_uid == ::geteuid()) {
    return descriptor;
  }
  ::close(descriptor);
  return -1;
}

std::shared_ptr<const int> owned(int descriptor) {
  return {new int(descriptor), [](const int* held) {
            ::close(*held);
            delete held;
          }};
}

/// Reads the complete file, but at most the maximum size of a control segment.
std::vector<std::byte> read_all(int descriptor) {
  std::vector<std::byte> bytes(control_bytes(kLocalChipCountMax));
  std::size_t count = 0;
  while (count < bytes.size()) {
    const ssize_t got =
        ::pread(descriptor, bytes.data() + count, bytes.size() - count, static_cast<off_t>(count));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(Errc::io, "can't read a control segment: {}", std::strerror(errno));
    if (got == 0) break;
    count += static_cast<std::size_t>(got);
  }
  bytes.resize(count);
  return bytes;
}

/// Moves the chips of a host, whose control segment numbers them from 0, to their places among all
/// chips of the job.
void place_chips(ControlState& control, const BoardHeader& header) {
  if (header.num_hosts == 1) return;
  const auto here = static_cast<std::size_t>(header.num_chips / header.num_hosts);
  if (control.chips.size() != here) {
    fail(Errc::corrupt, "control segment has {} chips, but host {} of {} has {} of {}",
         control.chips.size(), header.host, header.num_hosts, here, header.num_chips);
  }
  std::vector<ChipControl> all(static_cast<std::size_t>(header.num_chips));
  std::ranges::move(control.chips, all.begin() + static_cast<std::ptrdiff_t>(here) * header.host);
  control.chips = std::move(all);
}

EventRing read_ring(const BlackBox& box, RingId id, const Snapshot& snapshot) {
  EventRing ring{.kind = id.kind, .worker = id.owner};
  if (id.kind == RingKind::chip) {
    const ActorRow* row = snapshot.chip(id.owner);
    ring.worker = row != nullptr ? row->worker : -1;
    ring.chip = id.owner;
  }
  ring.events = box.events(id);
  const std::uint64_t written = box.written(id);
  ring.before = written - std::min<std::uint64_t>(written, ring.events.size());
  return ring;
}

/// Returns by how many nanoseconds the board's CLOCK_BOOTTIME is ahead of this process's. Returns 0
/// unless the two processes are in different time namespaces.
std::int64_t time_offset(const BoardHeader& header) {
  const std::uint64_t own = namespace_of_this_process("time");
  if (header.time_namespace == 0 || own == 0 || header.time_namespace == own) return 0;
  return header.boottime_minus_realtime_ns - (boottime_ns() - clock_ns(CLOCK_REALTIME));
}

/// Returns the pids of the board's own host. The pids of other hosts mean nothing on this machine.
std::vector<int> pids_of(const Snapshot& snapshot) {
  std::vector<int> pids{snapshot.header.trainer_pid};
  for (const ActorRow& row : snapshot.rows) {
    const bool is_here = snapshot.header.host_of(row.worker) == snapshot.header.host;
    if (row.kind == ActorKind::worker && row.pid > 0 && is_here) pids.push_back(row.pid);
  }
  std::ranges::sort(pids);
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return pids;
}

bool is_named(const std::string& job, const std::string& name) {
  try {
    return Board::open(job, true).header().name == name;
  } catch (const std::exception&) {
    return false;  // so a board that can't be read is found only by its id
  }
}

}  // namespace

SnapshotReader SnapshotReader::of_job(const std::string& job) {
  Board board = Board::open(job, true);
  const std::string run_dir = board.header().run_dir;
  return {job, std::move(board), run_dir};
}

bool SnapshotReader::is_run_folder(const std::string& path) {
  std::error_code error;
  return fs::exists(incident_in(path) + "/board.bin", error) ||
         fs::exists(path + "/result.json", error);
}

SnapshotReader SnapshotReader::of_folder(const std::string& run_dir) {
  if (!is_run_folder(run_dir)) {
    fail(Errc::not_found,
         "{}: there is neither result.json nor blackbox/board.bin: expected the run folder of a "
         "job that has ended",
         run_dir);
  }
  SnapshotReader reader("", std::nullopt, run_dir);
  if (fs::exists(incident_in(run_dir) + "/board.bin")) reader.open_copies(incident_in(run_dir));
  return reader;
}

std::optional<Snapshot> SnapshotReader::read_hang(const std::string& run_dir) {
  const std::string folder = hang_in(run_dir);
  if (!fs::exists(folder + "/board.bin")) return {};
  Snapshot hang = read_copies(folder, {.events = true});
  hang.header.run_dir = run_dir;
  return hang;
}

Snapshot SnapshotReader::read_copies(const std::string& folder, const SnapshotParts& parts) {
  SnapshotReader reader("", std::nullopt, "");
  reader.open_copies(folder);
  Snapshot copy{.live = false};
  const std::string run_dir = reader.board_->header().run_dir;
  reader.add_board(copy);
  copy.header.run_dir = run_dir;
  copy.held = true;
  read_processes(folder + "/processes.json", copy);
  if (parts.control) reader.add_control(copy);
  if (parts.events || parts.steps || parts.waits) reader.add_events(copy, parts);
  return copy;
}

void SnapshotReader::open_copies(const std::string& folder) {
  board_ = Board::open_file(folder + "/board.bin");
  job_ = board_->header().job;
  folder_ = folder;
}

void SnapshotReader::add_board(Snapshot& snapshot) const {
  snapshot.header = board_->header();
  if (!is_live()) snapshot.header.run_dir = run_dir_;  // since the folder may have been moved
  snapshot.job = job_;
  snapshot.held = is_live() && board_->is_held();
  snapshot.status = board_->status();
  snapshot.rows = board_->readable_rows(&snapshot.unreadable);
}

void SnapshotReader::add_control(Snapshot& snapshot) {
  const std::string path =
      folder_.empty() ? "/dev/shm/" + control_segment_name(snapshot.job) : folder_ + "/control.bin";
  if (!control_) {
    const int descriptor = open_own(path);
    if (descriptor < 0) {
      snapshot.no_control = fmt::format("{} can't be opened", path);
      return;
    }
    control_ = owned(descriptor);
  }
  try {
    snapshot.control = read_control_state(read_all(*control_));
    place_chips(*snapshot.control, snapshot.header);
    snapshot.arenas_named =
        is_live() && fs::exists(fmt::format("/dev/shm/weft-{}-chip-0", snapshot.job));
  } catch (const Error& e) {
    snapshot.no_control = e.what();
  }
}

void SnapshotReader::add_processes(Snapshot& snapshot) const {
  const std::uint64_t own = namespace_of_this_process("pid");
  for (const int pid : pids_of(snapshot)) {
    std::int64_t alive_at = 0;
    bool is_hidden = own == 0;
    for (const ActorRow& row : snapshot.rows) {
      if (snapshot.id_of(row) != HostPid{snapshot.header.host, pid}) continue;
      alive_at = std::max(alive_at, row.updated_ns);
      is_hidden = is_hidden || (row.pid_namespace != 0 && row.pid_namespace != own);
    }
    if (is_hidden) {
      snapshot.hidden = own == 0 ? "there is no /proc" : "they are in another pid namespace";
      continue;
    }
    // Only the trainer that made the board can hold it. So if the board is held, the trainer is
    // alive now.
    if (pid == snapshot.header.trainer_pid && snapshot.held) alive_at = snapshot.at_ns;
    snapshot.processes.push_back(read_process(pid, alive_at - time_offset(snapshot.header)));
    snapshot.processes.back().host = snapshot.header.host;
  }
}

/// Adds events if the job has a black box.
void SnapshotReader::add_events(Snapshot& snapshot, const SnapshotParts& parts) const {
  try {
    const auto box = std::make_shared<const BlackBox>(
        folder_.empty() ? BlackBox::open(job_) : BlackBox::open_file(folder_ + "/box.bin"));
    bool wants_ring = parts.steps || parts.events;
    for (const RingId id : box->rings()) {
      const bool is_chip = id.kind == RingKind::chip;
      if (wants_ring && (parts.events || is_chip)) {
        snapshot.rings.push_back(read_ring(*box, id, snapshot));
        wants_ring = parts.events;
      }
      if (!is_chip || !(parts.waits || parts.events)) continue;
      snapshot.waits.push_back({.chip = id.owner,
                                .calls = box->ledger(id.owner),
                                .waited_for_ns = box->waited_for_ns(id.owner)});
    }
    snapshot.unix_minus_monotonic_ns = box->scale().realtime_ns(0);
    if (is_live()) {
      snapshot.events_at_ns = clock_ns(CLOCK_REALTIME) - snapshot.unix_minus_monotonic_ns;
    }
    snapshot.texts = box;
  } catch (const Error& e) {
    if (e.code() != Errc::not_found && e.code() != Errc::io) throw;
  }
}

Snapshot SnapshotReader::read(const SnapshotParts& parts) {
  Snapshot snapshot{.at_ns = boottime_ns(), .live = is_live()};
  if (parts.metrics) snapshot.metrics = read_last_metrics(run_dir_);
  if (!board_) {
    snapshot.end = read_job_end(run_dir_);
    if (!snapshot.end) fail(Errc::not_found, "{}: there is no result.json", run_dir_);
    snapshot.job = snapshot.end->job;
    snapshot.held = false;
    snapshot.header.name = snapshot.end->name;
    snapshot.header.run_dir = run_dir_;
    snapshot.header.num_workers = snapshot.end->num_workers;
    snapshot.status = snapshot.end->status();
    return snapshot;
  }
  add_board(snapshot);
  if (is_live()) snapshot.at_ns += time_offset(snapshot.header);
  if (parts.control) add_control(snapshot);
  if (parts.control && is_live()) snapshot.streams = read_job_streams(job_);
  if (parts.processes && is_live()) add_processes(snapshot);
  if (parts.events || parts.steps || parts.waits) add_events(snapshot, parts);
  if (snapshot.over() || !is_live()) snapshot.end = read_job_end(run_dir_);
  if (!snapshot.held) snapshot.rescue = read_rescue_note(rescue_note_in(run_dir_));
  if (snapshot.end && snapshot.end->error && snapshot.end->error->signal != 0) {
    const JobFailure& error = *snapshot.end->error;
    snapshot.crash = read_crash(run_dir_, error.worker, error.pid);
  }
  return snapshot;
}

namespace {

bool is_in_lock(const ThreadStack& stack) {
  return std::ranges::any_of(stack.frames, [](const StackFrame& frame) {
    return frame.function.find("pthread_mutex_") != std::string::npos;
  });
}

}  // namespace

void add_sights(Snapshot& snapshot, std::span<const HostPid> processes) {
  const int host = snapshot.header.host;
  std::vector<int> all, known;
  for (const ProcessState& process : snapshot.processes) {
    known.push_back(process.pid);
    for (const ThreadState& thread : process.threads) all.push_back(thread.tid);
  }
  for (const HostPid& id : processes) {
    const int pid = id.pid;
    const ProcessState* process = id.host == host ? snapshot.process(id) : nullptr;
    if (process == nullptr || process->gone() || snapshot.sight(id) != nullptr) continue;
    std::vector<int> tids;
    for (const ThreadState& thread : process->threads) tids.push_back(thread.tid);
    ProcessSight sight{.host = host, .pid = pid};
    // Futexes are read before stacks, because a thread that is held to copy its stack leaves its
    // futex.
    for (const int tid : tids) {
      sight.threads.push_back(
          {.futex = read_futex_wait(tid, all), .file_lock = read_file_lock_wait(pid, tid, known)});
    }
    std::vector<ThreadStack> stacks = read_stacks(pid, tids);
    for (std::size_t i = 0; i < tids.size(); ++i) {
      ThreadSight& thread = sight.threads[i];
      thread.stack = std::move(stacks[i]);
      // Two arbitrary words may look like a mutex without an owner; the stack must confirm it.
      if (thread.futex.owner_is_gone && !is_in_lock(thread.stack)) thread.futex = {};
    }
    snapshot.sights.push_back(std::move(sight));
  }
}

std::vector<std::string> whole_jobs() {
  std::vector<std::string> whole;
  // Parts of other hosts than host 0, with their run folders.
  std::vector<std::pair<std::string, std::string>> parts;
  std::set<std::string> begun;
  for (const std::string& job : Board::jobs()) {
    std::string run_dir;
    try {
      const BoardHeader header = Board::open(job, true).header();
      if (header.num_hosts > 1 && header.host == 0) begun.insert(header.run_dir);
      if (header.host != 0) run_dir = header.run_dir;
    } catch (const Error&) {  // the job is listed: opening it will say why it can't be read
    }
    if (run_dir.empty()) whole.push_back(job);
    if (!run_dir.empty()) parts.emplace_back(job, run_dir);
  }
  for (const auto& [job, run_dir] : parts) {
    if (!begun.contains(run_dir)) whole.push_back(job);
  }
  return whole;
}

std::vector<std::string> find_jobs(const std::string& asked) {
  std::vector<std::string> found;
  for (const std::string& job : whole_jobs()) {
    if (job.starts_with(asked) || is_named(job, asked)) found.push_back(job);
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace weft
