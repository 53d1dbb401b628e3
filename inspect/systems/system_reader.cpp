#include "inspect/systems/system_reader.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "data/files/utf8.hpp"
#include "inspect/process/segment_file.hpp"
#include "inspect/systems/system_jobs.hpp"
#include "inspect/systems/system_mail.hpp"
#include "transport/actors/actor_op.hpp"
#include "transport/blackbox/box_clock.hpp"
#include "transport/job/job_folder.hpp"
#include "transport/lanes/peer_table.hpp"
#include "transport/memory/life_lock.hpp"

namespace weft {
namespace {

constexpr std::string_view kPrefix = "weft-";
constexpr std::string_view kSuffix = "-actors";

template <std::size_t N>
std::string text_in(const char (&from)[N]) {
  return as_utf8({from, ::strnlen(from, N)});
}

/// Opens the table and reads its head. Throws not_found, version or corrupt.
SegmentFile open_table(const std::string& id, ActorTableHead& head) {
  std::optional<SegmentFile> file = SegmentFile::open(actor_table_name(id));
  if (!file) fail(Errc::not_found, "there is no actor system {}", id);
  if (!file->read(0, &head, sizeof head)) {
    fail(Errc::corrupt, "segment {} has no head", file->name());
  }
  if (head.magic == 0) fail(Errc::not_found, "segment {} is still being made", file->name());
  if (head.magic != kActorTableMagic) {
    fail(Errc::corrupt, "segment {} is no table of actors", file->name());
  }
  if (head.version != kActorTableVersion) {
    fail(Errc::version, "segment {}: actors of version {}, but this program reads version {}",
         file->name(), head.version, kActorTableVersion);
  }
  return std::move(*file);
}

/// Returns the names of the endpoints, at most `count`. Each name ends in a null character.
std::vector<std::string> endpoints_of(const MeshTableRow& row) {
  std::vector<std::string> names;
  std::string_view rest(row.endpoints, sizeof row.endpoints);
  while (names.size() < row.endpoint_count) {
    const auto end = rest.find('\0');
    if (end == rest.npos || end == 0) break;
    names.push_back(as_utf8(rest.substr(0, end)));
    rest.remove_prefix(end + 1);
  }
  return names;
}

/// Returns the name of an ActorRestart.
std::string restart_text(std::uint8_t restart) {
  constexpr std::array<std::string_view, 4> kNames{"actor", "mesh", "process", "none"};
  return std::string(restart < kNames.size() ? kNames[restart] : "?");
}

SystemMesh mesh_of(const MeshTableRow& row) {
  SystemMesh mesh{.name = text_in(row.name),
                  .type = text_in(row.type),
                  .first_row = row.first_row,
                  .count = row.count,
                  .endpoints = endpoints_of(row),
                  .own_thread = row.own_thread != 0,
                  .restart = restart_text(row.restart),
                  .job = text_in(row.job),
                  .max_restarts = row.max_restarts,
                  .restarts = row.restarts.load(std::memory_order_relaxed),
                  .escalates = row.then == 0,
                  .has_ended = row.is_ended.load(std::memory_order_acquire) != 0};
  if (mesh.has_ended && row.cause_code.load(std::memory_order_relaxed) != 0) {
    mesh.cause = text_in(row.cause);
  }
  return mesh;
}

SystemJobWait job_wait_of(const AwaitedJob& wait, std::uint32_t slot, const SegmentFile& file) {
  SystemJobWait shown{.writes = wait.writes, .since_ns = wait.since_ns};
  JobSourceRow row{};
  if (wait.source >= kJobSourceCountMax ||
      !file.read(job_source_offset(slot, wait.source), &row, sizeof row) ||
      row.is_set.load() != 1) {
    return shown;
  }
  shown.job = text_in(row.job);
  shown.name = text_in(row.name);
  return shown;
}

SystemActor actor_of(const ActorTableRow& row, std::uint32_t mesh, std::uint32_t index,
                     const SegmentFile& file) {
  constexpr std::uint64_t kLatest = std::numeric_limits<std::int64_t>::max();
  SystemActor actor{.mesh = mesh,
                    .index = index,
                    .position = ActorPosition::of(row.position.load(std::memory_order_relaxed)),
                    .since_ns = static_cast<std::int64_t>(
                        std::min(row.since_ns.load(std::memory_order_acquire), kLatest)),
                    .function = ActorFunction::of(row.function.load(std::memory_order_relaxed)),
                    .call = row.call.load(std::memory_order_relaxed),
                    .begun = row.begun.load(std::memory_order_relaxed),
                    .tid = row.tid.load(std::memory_order_relaxed)};
  const std::uint64_t awaited = row.awaited.load(std::memory_order_relaxed);
  if (awaited == 0 || !actor.runs()) return actor;
  const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
  actor.pipe = AwaitedPipe::of(awaited, now_ns);
  if (const auto wait = AwaitedJob::of(awaited, now_ns)) {
    actor.job_wait = job_wait_of(*wait, actor.position.process.slot, file);
  }
  if (!actor.pipe && !actor.job_wait) actor.awaits = AwaitedCall::of(awaited);
  return actor;
}

/// Reads meshes and actors. The rows of a mesh's actors follow those of the previous mesh.
void add_table(SystemSnapshot& system, const SegmentFile& file, const ActorTableHead& head) {
  const std::uint32_t meshes =
      std::min(head.mesh_count.load(std::memory_order_relaxed), kMeshCountMax);
  MeshTableRow row{};
  for (std::uint32_t m = 0; m < meshes; ++m) {
    const auto first = static_cast<std::uint32_t>(system.actors.size());
    if (!file.read(mesh_row_offset(m), &row, sizeof row) || row.first_row != first ||
        row.row_count > kActorCountMax - first || row.count > row.row_count) {
      system.remarks.push_back(fmt::format(
          "mesh {} and those behind it can't be read: its row in segment {} says that it has {} "
          "actors in {} rows from row {} on",
          m, file.name(), row.count, row.row_count, row.first_row));
      return;
    }
    std::vector<ActorTableRow> rows(row.row_count);
    if (!file.read(actor_row_offset(first), rows.data(), rows.size() * sizeof(ActorTableRow))) {
      system.remarks.push_back(fmt::format("segment {} ends before mesh {}", file.name(), m));
      return;
    }
    system.meshes.push_back(mesh_of(row));
    for (std::uint32_t i = 0; i < row.row_count; ++i) {
      system.actors.push_back(actor_of(rows[i], m, i, file));
    }
  }
}

/// Clears what can't be true. The row of an actor whose process is gone and has no slot any more
/// shows what it did when it was killed, so its function and waits are cleared. So are waits for
/// actors that don't exist.
void forget_what_cant_be(SystemSnapshot& system) {
  const auto check_user = [&](std::optional<AwaitedPipe>& pipe) {
    if (!pipe || !pipe->other.is_known || pipe->other.row == PipeUser::kNoActor) return;
    pipe->other.is_known = pipe->other.row < system.actors.size();
  };
  for (SystemProcess& process : system.processes) check_user(process.pipe);
  for (SystemActor& actor : system.actors) {
    const SystemProcess* process = system.process(actor.position.process.slot);
    const bool is_gone = process == nullptr || process->peer != actor.position.process;
    if (is_gone) actor.since_ns = 0;
    if (is_gone || (actor.awaits && actor.awaits->row >= system.actors.size())) {
      actor.awaits.reset();
    }
    if (is_gone) actor.pipe.reset();
    if (is_gone) actor.job_wait.reset();
    check_user(actor.pipe);
  }
}

/// Adds the waits at pipes of threads that run no actor.
void add_pipes(SystemSnapshot& system, const SegmentFile& file) {
  std::vector<std::uint64_t> words(kPeerCountMax);
  if (!file.read(pipe_wait_offset(0), words.data(), words.size() * sizeof(std::uint64_t))) return;
  const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
  for (SystemProcess& process : system.processes) {
    if (process.state != PeerState::alive) continue;
    process.pipe = AwaitedPipe::of(words[process.peer.slot], now_ns);
  }
}

/// Returns whether the process has mapped memory of the system. If it hasn't, the system's process
/// is gone and another process has got its id.
bool has_mapped(int pid, const std::string& id) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  const std::string part = fmt::format("/dev/shm/weft-{}-", id);
  for (std::string line; std::getline(maps, line);) {
    if (line.find(part) != std::string::npos) return true;
  }
  return false;
}

void add_peers(SystemSnapshot& system) {
  const std::optional<SegmentFile> file = SegmentFile::open(PeerTable::segment_name(system.id));
  TableHeader header{};
  std::vector<PeerRow> rows(kPeerCountMax);
  if (!file || !file->read(0, &header, sizeof header) || header.magic != kPeerTableMagic ||
      header.version != kLaneVersion ||
      !file->read(sizeof header, rows.data(), rows.size() * sizeof(PeerRow))) {
    system.remarks.push_back(fmt::format("the table of processes, segment {}, can't be read",
                                         PeerTable::segment_name(system.id)));
    return;
  }
  for (std::uint32_t slot = 0; slot < kPeerCountMax; ++slot) {
    const PeerLife life = PeerLife::of(rows[slot].life.load(std::memory_order_relaxed));
    if (life.state == PeerState::free) continue;
    const int pid = rows[slot].pid.load(std::memory_order_relaxed);
    SystemProcess process{.peer = {.slot = slot, .incarnation = life.incarnation},
                          .state = life.state,
                          .process = {.pid = pid}};
    if (pid > 0 && (system.is_held || has_mapped(pid, system.id))) {
      process.process = read_process(pid, boottime_ns());
    }
    system.processes.push_back(std::move(process));
  }
  const SystemProcess* keeper = system.process(0);
  system.sees_processes =
      !system.is_held || keeper == nullptr || keeper->process.pid == 0 || !keeper->process.gone();
  if (!system.sees_processes) {
    system.remarks.push_back(
        "the program lives, but its processes can't be seen: they are in another pid namespace");
  }
}

/// Adds to the snapshot what the processes' memory says about calls, and about messages that nobody
/// has begun.
class MailReader {
 public:
  explicit MailReader(SystemSnapshot& system) : system_(system) {}

  void read() {
    for (const SystemProcess& process : system_.processes) open(process.peer);
    for (SystemActor& actor : system_.actors) {
      actor.is_awaited = actor.runs() && actor.function.kind == ActorFunctionKind::call &&
                         is_awaited(actor.function.caller, actor.call);
    }
    for (const auto& [slot, mail] : mails_) {
      for (std::uint32_t port = 1; port < mail.port_count(); ++port) read_port(slot, mail, port);
    }
    for (SystemActor& actor : system_.actors) {
      const SystemProcess* process = system_.process(actor.position.process.slot);
      if (process == nullptr || process->peer != actor.position.process) continue;
      const auto box = boxes_.find({process->peer.slot, actor.position.port});
      if (box != boxes_.end()) actor.box = box->second;
    }
  }

 private:
  void open(PeerId peer) {
    try {
      if (auto mail = SystemMail::open(system_.id, peer)) {
        mails_.emplace(peer.slot, std::move(*mail));
      }
    } catch (const Error& error) {
      system_.remarks.emplace_back(error.what());
    }
  }

  bool is_awaited(std::uint32_t caller, std::uint64_t call) const {
    const auto mail = mails_.find(caller);
    return mail != mails_.end() && mail->second.awaits(call);
  }

  void read_port(std::uint32_t slot, const SystemMail& mail, std::uint32_t port) {
    for (const std::uint32_t sender : mail.senders(port)) {
      const auto messages = mail.waiting(port, sender);
      std::uint32_t& box = boxes_[{slot, port}];
      box = std::max(box, static_cast<std::uint32_t>(messages.size()));
      for (const SystemMail::Waiting& message : messages) {
        const ActorOp op = op_of_kind(message.kind);
        if ((op != ActorOp::call && op != ActorOp::tell) ||
            message.target >= system_.actors.size()) {
          continue;
        }
        ++system_.actors[message.target].unread;
        add(sender, message, op == ActorOp::call && is_awaited(sender, message.call));
      }
    }
  }

  void add(std::uint32_t from, const SystemMail::Waiting& message, bool awaited) {
    const std::uint32_t endpoint = endpoint_of_kind(message.kind);
    auto found = std::ranges::find_if(system_.open, [&](const OpenMessages& open) {
      return open.from == from && open.row == message.target && open.endpoint == endpoint;
    });
    if (found == system_.open.end()) {
      found =
          system_.open.insert(found, {.from = from, .row = message.target, .endpoint = endpoint});
    }
    ++found->count;
    found->awaited += awaited ? 1 : 0;
  }

  SystemSnapshot& system_;
  std::map<std::uint32_t, SystemMail> mails_;                               ///< by slot
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> boxes_;  ///< by slot and port
};

bool is_named(const std::string& id, std::string_view name) {
  ActorTableHead head{};
  try {
    open_table(id, head);
  } catch (const Error&) {
    return false;
  }
  return text_in(head.name) == name;
}

}  // namespace

std::vector<std::string> actor_systems() {
  std::vector<std::string> ids;
  for (const std::string& name : Segment::list(kPrefix)) {
    if (name.size() != kPrefix.size() + kJobIdLength + kSuffix.size() || !name.ends_with(kSuffix)) {
      continue;
    }
    std::string id = name.substr(kPrefix.size(), kJobIdLength);
    if (is_job_id(id)) ids.push_back(std::move(id));
  }
  return ids;
}

std::vector<std::string> find_actor_systems(std::string_view asked) {
  std::vector<std::string> found;
  for (const std::string& id : actor_systems()) {
    if (id.starts_with(asked) || is_named(id, asked)) found.push_back(id);
  }
  return found;
}

SystemSnapshot read_actor_system(const std::string& id, const SystemParts& parts) {
  ActorTableHead head{};
  const SegmentFile file = open_table(id, head);
  SystemSnapshot system{
      .id = id, .name = text_in(head.name), .started_unix_ns = head.started_unix_ns};
  system.is_held =
      LifeLock::is_held(Segment::open(actor_table_name(id), true, 1), kActorTableLifeByte);
  add_table(system, file, head);
  add_peers(system);
  add_pipes(system, file);
  forget_what_cant_be(system);
  MailReader(system).read();
  if (parts.jobs) add_jobs(system);
  system.at_ns = clock_ns(CLOCK_MONOTONIC);
  return system;
}

}  // namespace weft
