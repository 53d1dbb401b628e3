/// A sync of a group: each chip counts its own epoch word up by one, then waits until all others
/// have done so too. The words of group `mask` lie in one GroupLine per chip. Invariants:
///
/// 1. A chip's epoch word is written by that chip only, goes up by one at each sync of the group
///    and is never reset; it is compared by signed difference, so it may wrap.
/// 2. All chips of a group pass through the same syncs in the same order. A chip announces epoch
///    e + 1 only after it has seen epoch e of all others, so no two are more than one apart.
/// 3. A chip that announces epoch e has ended all its reads and writes of what the syncs before e
///    ordered: the store releases them, the peer's load acquires them.
/// 4. From 2 and 3: once a chip has passed sync e, nobody reads any more what belongs to sync
///    e - 1. So what there is per sync (signature, mailbox) exists twice, chosen by the parity of
///    the epoch, and a collective whose results leave through mailboxes needs no sync at its end.
/// 5. The signature of a call is stored before the epoch that announces it, and compared after that
///    epoch was seen, before anything of the peer's is used.
/// 6. A waiter counts itself in `sleepers` before it looks at the epoch a last time and sleeps; the
///    announcer looks at `sleepers` after it has stored the epoch; all four in the one order of
///    seq_cst. So either the waiter sees the epoch, or the announcer sees the sleeper and wakes it.
///    A process killed in its sleep leaves `sleepers` too high: that costs wake calls, nothing
///    else.
/// 7. No sleep is longer than kSleepSlice, so an abort or a deadline is noticed without a wake.
/// 8. A collective that threw divergence or was left by a timeout stays the chip's current one: it
///    announces nothing more, so that nobody can take later words for earlier ones.

#include <weft/transport/communicator.hpp>

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <weft/spmd/error.hpp>
#include <weft/transport/call_record.hpp>
#include <weft/transport/control_format.hpp>

namespace weft {
namespace {

constexpr std::chrono::nanoseconds kSleepSlice = std::chrono::milliseconds(20);

bool reached(std::uint32_t epoch, std::uint32_t awaited) {
  return static_cast<std::int32_t>(epoch - awaited) >= 0;
}

/// "all_reduce 'fc1.weight.grad'", cut to fit a row, without an allocation.
struct Label {
  Label(CollectiveKind kind, std::string_view name) {
    add(to_string(kind));
    if (name.empty()) return;
    add(" '");
    add(name.substr(0, std::min(name.size(), sizeof(text) - size - 1)));
    add("'");
  }
  void add(std::string_view part) {
    std::memcpy(text + size, part.data(), part.size());
    size += part.size();
  }

  char text[96];
  std::size_t size = 0;
};

}  // namespace

/// The chips that differ only in `atoms`, in group order.
struct Communicator::Group {
  AtomList atoms;
  int index = 0;  ///< of this chip
  std::vector<int> chips;
  std::vector<GroupLine*> lines;
  std::vector<std::byte*> arenas;
  std::array<std::vector<std::byte*>, 2> mailboxes;  ///< by the parity of the epoch

  int size() const { return static_cast<int>(chips.size()); }
  GroupLine& line() const { return *lines[static_cast<std::size_t>(index)]; }
  GroupLine& line(int member) const { return *lines[static_cast<std::size_t>(member)]; }
};

Communicator::Communicator(JobMemory& memory, const Mesh& mesh, int position, BoardWriter board,
                           WaitPolicy policy)
    : memory_(&memory), mesh_(&mesh), position_(position), board_(board), policy_(policy) {
  if (mesh.size() > memory.num_chips()) {
    fail(Errc::mesh_mismatch, "mesh {} has {} chips, the job's memory has {}", mesh.to_string(),
         mesh.size(), memory.num_chips());
  }
  if (position < 0 || position >= mesh.size()) {
    fail(Errc::invalid_argument, "position = {}: mesh {} has positions 0 to {}", position,
         mesh.to_string(), mesh.size() - 1);
  }
  chip_ = mesh.device_at(position);
  count_ = memory.call_record(chip_).number.load(std::memory_order_relaxed);
}

Communicator::~Communicator() = default;

Communicator::Group& Communicator::find_group(AtomList atoms) {
  for (const auto& group : groups_) {
    if (group->atoms == atoms) return *group;
  }
  for (int i = 0; i < atoms.size(); ++i) {
    if (atoms[i] == 0 || atoms[i] > mesh_->num_atoms() || atoms.prefix(i).contains(atoms[i])) {
      fail(Errc::invalid_argument,
           "collective over atoms {:#x}: expected distinct atoms of 1 to {}", atoms.bits(),
           mesh_->num_atoms());
    }
  }
  const AtomMask mask = atoms.mask();
  auto group = std::make_unique<Group>();
  group->atoms = atoms;
  group->index = static_cast<int>(mesh_->index_in(position_, atoms));
  for (const int position : mesh_->group(position_, atoms)) {
    const int chip = mesh_->device_at(position);
    group->chips.push_back(chip);
    group->lines.push_back(&memory_->group_line(mask, chip));
    group->arenas.push_back(memory_->arena(chip));
    std::byte* mailboxes = memory_->mailboxes(mask, chip);
    group->mailboxes[0].push_back(mailboxes);
    group->mailboxes[1].push_back(mailboxes + kMailboxBytes);
  }
  if (group->size() > 1) memory_->reserve_mailboxes(mask, chip_);
  return *groups_.emplace_back(std::move(group));
}

GroupMemory Communicator::group_memory() const {
  return {group_->arenas, group_->mailboxes[epoch_ % 2], group_->index};
}

void Communicator::start(const CollectiveCall& call) {
  if (stage_ != Stage::idle) {
    fail(Errc::invalid_argument, "chip {} can't start {} '{}' before {} has ended", chip_,
         to_string(call.kind), call.name, describe_call());
  }
  Group& group = find_group(call.atoms);
  require_valid(call, group.size(), memory_->arena_capacity());
  group_ = &group;
  call_ = call;
  algorithm_ = choose_algorithm(call, group.size());
  ++count_;
  const CallWords words = encode(call);
  signature_ = signature_of(count_, words);
  write_record(memory_->call_record(chip_), count_, words, signature_, call.name);
  const Label label(call.kind, call.name);
  board_.enter_collective(count_, {label.text, label.size});

  epoch_ = group.line().epoch.load(std::memory_order_relaxed) + 1;
  prepare(algorithm_, call_, group_memory());
  group.line().signature[epoch_ % 2].store(signature_, std::memory_order_relaxed);
  stage_ = Stage::entry;
  announce();
}

void Communicator::announce() {
  arrived_ = 0;
  if (group_->size() == 1) return;
  GroupLine& line = group_->line();
  line.epoch.store(epoch_, std::memory_order_seq_cst);
  if (line.sleepers.load(std::memory_order_seq_cst) != 0) wake_all(line.epoch);
}

/// Group index of the first peer that hasn't been seen at this epoch.
int Communicator::awaited() const { return (group_->index + 1 + arrived_) % group_->size(); }

bool Communicator::all_arrived() {
  for (; arrived_ < group_->size() - 1; ++arrived_) {
    const GroupLine& line = group_->line(awaited());
    if (!reached(line.epoch.load(std::memory_order_acquire), epoch_)) return false;
    if (stage_ == Stage::entry &&
        line.signature[epoch_ % 2].load(std::memory_order_relaxed) != signature_) {
      fail_divergence(awaited());
    }
  }
  return true;
}

bool Communicator::poll() {
  if (stage_ == Stage::idle) return true;
  if (!all_arrived()) return still_waiting();
  if (stage_ == Stage::entry) {
    perform(algorithm_, call_, group_memory());
    if (!has_exit_sync(algorithm_) || group_->size() == 1) return finish();
    stage_ = Stage::exit;
    ++epoch_;
    announce();
    if (!all_arrived()) return still_waiting();
  }
  return finish();
}

bool Communicator::finish() {
  stage_ = Stage::idle;
  board_.leave_collective();
  return true;
}

bool Communicator::still_waiting() const {
  if (memory_->aborted()) {
    fail(Errc::peer_lost, "{}; chip {} was in {} (step {}), waiting for chip {}",
         memory_->abort_reason(), chip_, describe_call(), step_,
         group_->chips[static_cast<std::size_t>(awaited())]);
  }
  return false;
}

void Communicator::wait() {
  std::optional<Clock::time_point> since;
  while (!poll()) await_peer(since);
}

/// Returns when the awaited peer has arrived or the job is aborted. `since` is set where a wait of
/// this collective first lasts longer than its spins.
void Communicator::await_peer(std::optional<Clock::time_point>& since) {
  GroupLine& line = group_->line(awaited());
  const auto arrived = [&line, this] {
    return reached(line.epoch.load(std::memory_order_acquire), epoch_);
  };
  for (int i = 0; i < policy_.spins; ++i) {
    if (arrived()) return;
    pause_cpu();
  }
  if (!since) since = Clock::now();
  board_.waiting_for(group_->chips[static_cast<std::size_t>(awaited())]);
  for (int i = 0; !arrived() && !memory_->aborted(); ++i) {
    const Clock::duration waited = Clock::now() - *since;
    if (waited >= policy_.deadline) fail_timeout(waited);
    if (i < policy_.yields) {
      sched_yield();
      continue;
    }
    if (i > policy_.yields) find_divergence();
    line.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t epoch = line.epoch.load(std::memory_order_seq_cst);
    if (!reached(epoch, epoch_)) {
      sleep_on(line.epoch, epoch,
               std::min<std::chrono::nanoseconds>(kSleepSlice, policy_.deadline - waited));
    }
    line.sleepers.fetch_sub(1, std::memory_order_relaxed);
  }
}

/// A peer that is at this collective's number or beyond, but hasn't arrived, called something else
/// in its place: it is asleep in another group, and nobody would ever wake.
void Communicator::find_divergence() const {
  for (int i = arrived_; i < group_->size() - 1; ++i) {
    const int member = (group_->index + 1 + i) % group_->size();
    const CallRecord& record =
        memory_->call_record(group_->chips[static_cast<std::size_t>(member)]);
    const std::optional<RecordedCall> call = read_record(record);
    if (!call || call->number < count_) continue;
    if (call->number == count_ && signature_of(call->number, call->words) == signature_) continue;
    // The record's number was acquired, so an epoch announced before it is visible now.
    const std::uint32_t epoch = group_->line(member).epoch.load(std::memory_order_acquire);
    if (!reached(epoch, epoch_)) fail_divergence(member);
  }
}

std::string Communicator::describe_call() const {
  return to_string(RecordedCall{count_, encode(call_), std::string(call_.name)}, *mesh_);
}

void Communicator::fail_divergence(int member) const {
  const int chip = group_->chips[static_cast<std::size_t>(member)];
  const std::optional<RecordedCall> other = read_record(memory_->call_record(chip));
  fail(Errc::program_divergence, "at step {} chip {} called {}, but chip {} called {}", step_,
       chip_, describe_call(), chip,
       other ? to_string(*other, *mesh_) : "something that it has left since");
}

void Communicator::fail_timeout(Clock::duration waited) const {
  std::string missing;
  for (int i = arrived_; i < group_->size() - 1; ++i) {
    const int member = (group_->index + 1 + i) % group_->size();
    if (reached(group_->line(member).epoch.load(std::memory_order_acquire), epoch_)) continue;
    const int chip = group_->chips[static_cast<std::size_t>(member)];
    const std::optional<RecordedCall> last = read_record(memory_->call_record(chip));
    missing += fmt::format("{}chip {} (last called: {})", missing.empty() ? "" : ", ", chip,
                           last ? to_string(*last, *mesh_) : "changing just now");
  }
  fail(Errc::timeout, "chip {} waited {:.3f} s in {} (step {}, {}) for {}", chip_,
       std::chrono::duration<double>(waited).count(), describe_call(), step_,
       stage_ == Stage::entry ? "at its entry" : "at its exit", missing);
}

}  // namespace weft
