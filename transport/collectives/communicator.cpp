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
///    e - 1. So mailboxes exist twice, chosen by the parity of the epoch, and a collective whose
///    results leave through them needs no sync at its end.
/// 5. The signature of a call is announced in one word with the epoch, and compared before anything
///    of the peer's is used. A peer that is an epoch further has compared ours: had it found
///    another, it would not have gone on.
/// 6. All sleepers of a group sleep on one word, `woken` of its first chip, and are woken once per
///    sync. A waiter counts itself in `sleepers` and reads `woken`; then comes a heavy fence; then
///    it looks at the epochs a last time, and sleeps while `woken` stays so. Between announcing an
///    epoch and looking at the others' there is a light fence; who finds all epochs there looks at
///    `sleepers`, and if there are any sets `woken` to the epoch and wakes them. So a chip whose
///    epoch a waiter missed looks after that waiter was counted, and so does whoever has seen that
///    chip's epoch; one of them is the last to find all there. A process killed in its sleep leaves
///    `sleepers` too high: that costs a call per sync, nothing else.
/// 7. No sleep is longer than kSleepSlice, so an abort or a deadline is noticed without a wake.
/// 8. A collective that threw divergence or was left by a timeout stays the chip's current one: it
///    announces nothing more, so that nobody can take later words for earlier ones.

#include "transport/collectives/communicator.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <span>

#include <weft/error.hpp>

#include "transport/collectives/call_record.hpp"
#include "transport/job/control_format.hpp"

namespace weft {
namespace {

/// Spins that don't pause: a pause makes the exchange of a cache line a third slower.
constexpr int kEagerSpins = 200;

/// A yield that took longer gave the core to another program, for as long as the scheduler likes. A
/// thread that wakes from sleep gets the core at once, so for some waits there are no yields.
constexpr std::chrono::nanoseconds kLongYield = std::chrono::milliseconds(2);
constexpr int kYieldsToSkip = 100;

std::uint64_t announcement(std::uint32_t epoch, std::uint64_t signature) {
  return std::uint64_t{epoch} << 32 | (signature & 0xffff'ffffU);
}
std::uint32_t epoch_of(std::uint64_t announced) {
  return static_cast<std::uint32_t>(announced >> 32);
}

bool has_reached(std::uint64_t announced, std::uint32_t epoch) {
  return static_cast<std::int32_t>(epoch_of(announced) - epoch) >= 0;
}
bool has_reached(const GroupLine& line, std::uint32_t epoch) {
  return has_reached(line.announced.load(std::memory_order_acquire), epoch);
}

}  // namespace

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
  record_ = &memory.call_record(chip_);
  count_ = record_->number.load(std::memory_order_relaxed);
}

Communicator::~Communicator() = default;

Group& Communicator::find_group(AtomList atoms) {
  for (const auto& group : groups_) {
    if (group->atoms == atoms) return *group;
  }
  auto group = std::make_unique<Group>(*memory_, *mesh_, position_, atoms);
  if (group->size() > 1) memory_->reserve_mailboxes(atoms.mask(), chip_);
  return *groups_.emplace_back(std::move(group));
}

PreparedCall Communicator::prepare(const CollectiveCall& call) {
  Group& group = find_group(call.atoms);
  require_valid(call, group.size(), memory_->arena_capacity());
  PreparedCall prepared;
  prepared.id_ = ++prepared_count_;
  prepared.call_ = call;
  prepared.name_ = call.name;
  prepared.call_.name = {};
  prepared.group_ = &group;
  prepared.algorithm_ = choose_algorithm(call, group.size(), memory_->crowded());
  prepared.in_lines_ = prepared.algorithm_ == Algorithm::mailbox &&
                       bytes_of(call, group.size()).source <= kLineMailboxBytes;
  prepared.words_ = encode(call);
  prepared.digest_ = digest_of(prepared.words_);
  prepared.label_ = call.name.empty() ? std::string(to_string(call.kind))
                                      : fmt::format("{} '{}'", to_string(call.kind), call.name);
  return prepared;
}

GroupMemory Communicator::group_memory() const {
  const auto& mailboxes = current_->in_lines_ ? group().line_mailboxes : group().mailboxes;
  return {group().arenas, mailboxes[epoch_ % 2], group().index};
}

void Communicator::start(const CollectiveCall& call) {
  if (stage_ == Stage::idle) return start(unprepared_.emplace(prepare(call)));
  fail(Errc::invalid_argument, "chip {} can't start {} '{}' before {} has ended", chip_,
       to_string(call.kind), call.name, describe_call());
}

void Communicator::start(const PreparedCall& call) {
  if (stage_ != Stage::idle) {
    fail(Errc::invalid_argument, "chip {} can't start {} before {} has ended", chip_, call.label_,
         describe_call());
  }
  current_ = &call;
  signature_ = signature_of(++count_, call.digest_);
  epoch_ = epoch_of(group().own->announced.load(std::memory_order_relaxed)) + 1;
  if (stores_before_entry(call.algorithm_)) {
    weft::prepare(call.algorithm_, call.call_, group_memory());
  }
  stage_ = Stage::entry;
  announce();
  record(call);  // while the announcement is on its way
}

/// For the others to read when something is wrong. Only the numbers are new where the chip calls
/// the same again.
void Communicator::record(const PreparedCall& call) {
  if (recorded_ == call.id_) {
    renew_record(*record_, count_, signature_);
    board_.enter_collective_again(count_);
  } else {
    write_record(*record_, count_, call.words_, signature_, call.name_);
    board_.enter_collective(count_, call.label_);
    recorded_ = call.id_;
  }
}

void Communicator::announce() {
  arrived_ = 0;
  if (group().size() == 1) return;
  group().own->announced.store(announcement(epoch_, signature_), std::memory_order_release);
  light_fence();
}

/// Group index of the first peer that hasn't been seen at this epoch.
int Communicator::awaited() const { return group().peers[arrived_]; }

bool Communicator::all_arrived() {
  for (; arrived_ < group().peers.size(); ++arrived_) {
    const int peer = group().peers[arrived_];
    const GroupLine& line = group().line(peer);
    const std::uint64_t announced = line.announced.load(std::memory_order_acquire);
    if (!has_reached(announced, epoch_)) return false;
    Arrival& arrival = group().arrivals[static_cast<std::size_t>(peer)];
    arrival.announced = announced;
    if (current_->in_lines_) {
      std::memcpy(arrival.mailbox.data(), line.mailbox[epoch_ % 2], kLineMailboxBytes);
    }
  }
  return true;
}

bool Communicator::pass_sync() {
  if (!all_arrived()) return false;
  wake_sleepers();
  return true;
}

void Communicator::wake_sleepers() const {
  GroupLine& first = *group().first;
  if (first.sleepers.load(std::memory_order_relaxed) != 0 &&
      first.woken.exchange(epoch_, std::memory_order_seq_cst) != epoch_) {
    wake_all(first.woken);
  }
}

void Communicator::require_same_call() const {
  const std::uint64_t expected = announcement(epoch_, signature_);
  for (const int peer : group().peers) {
    const std::uint64_t announced = group().arrivals[static_cast<std::size_t>(peer)].announced;
    if (announced != expected && epoch_of(announced) == epoch_) fail_divergence(peer);
  }
}

bool Communicator::poll() {
  if (stage_ == Stage::idle) return true;
  if (!pass_sync()) return still_waiting();
  if (stage_ == Stage::entry) {
    require_same_call();
    if (current_->algorithm_ != Algorithm::signal) {
      perform(current_->algorithm_, current_->call_, group_memory());
    }
    if (!has_exit_sync(current_->algorithm_) || group().size() == 1) return finish();
    stage_ = Stage::exit;
    ++epoch_;
    announce();
    if (!pass_sync()) return still_waiting();
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
         memory_->abort_reason(), chip_, describe_call(), step_, group().chip(awaited()));
  }
  return false;
}

void Communicator::wait() {
  std::optional<Clock::time_point> since;
  while (!poll()) await_peers(since);
}

/// Returns when all peers have arrived or the job is aborted. `since` is set where a wait of this
/// collective first lasts longer than its spins.
void Communicator::await_peers(std::optional<Clock::time_point>& since) {
  for (int i = 0; i < policy_.spins; ++i) {
    if (all_arrived()) return;
    if (i >= kEagerSpins) pause_cpu();
  }
  if (!since) since = Clock::now();
  board_.waiting_for(group().chip(awaited()));
  Clock::time_point now = *since;
  while (!all_arrived() && !memory_->aborted()) {
    if (now - *since >= policy_.deadline) fail_timeout(now - *since);
    const Clock::time_point before = now;
    if (now - *since < policy_.yield_for && yields_to_skip_ == 0) {
      sched_yield();
      now = Clock::now();
      if (now - before > kLongYield) yields_to_skip_ = kYieldsToSkip;
      continue;
    }
    yields_to_skip_ = std::max(0, yields_to_skip_ - 1);
    sleep(policy_.deadline - (now - *since));
    now = Clock::now();
    if (now - before >= kSleepSlice) find_divergence();
  }
}

void Communicator::sleep(Clock::duration longest) {
  GroupLine& first = *group().first;
  first.sleepers.fetch_add(1, std::memory_order_seq_cst);
  const std::uint32_t woken = first.woken.load(std::memory_order_seq_cst);
  heavy_fence();
  if (!all_arrived()) {
    sleep_on(first.woken, woken, std::min<std::chrono::nanoseconds>(kSleepSlice, longest));
  }
  first.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

/// A peer that is at another collective of this number, or beyond, but hasn't arrived, called
/// something else in its place: it is asleep in another group, and nobody would ever wake. (It
/// announces before it records, so an epoch announced with that number is visible once the number
/// is.) At the same collective, it may be long at work between entry and exit.
void Communicator::find_divergence() const {
  for (const int member : std::span(group().peers).subspan(arrived_)) {
    const std::optional<RecordedCall> call =
        read_record(memory_->call_record(group().chip(member)));
    if (!call || call->number < count_) continue;
    const bool same = call->number == count_ && digest_of(call->words) == current_->digest_;
    if (!same && !has_reached(group().line(member), epoch_)) fail_divergence(member);
  }
}

std::string Communicator::describe_call() const {
  return to_string(RecordedCall{count_, current_->words_, current_->name_}, *mesh_);
}

void Communicator::fail_divergence(int member) const {
  constexpr int kTryCount = 1000;  // it may have announced what it is just recording
  const int chip = group().chip(member);
  std::optional<RecordedCall> other;
  for (int i = 0; i < kTryCount && (!other || other->number < count_); ++i) {
    other = read_record(memory_->call_record(chip));
    sched_yield();
  }
  fail(Errc::program_divergence, "at step {} chip {} called {}, but chip {} called {}", step_,
       chip_, describe_call(), chip,
       other ? to_string(*other, *mesh_) : "something that it has left since");
}

void Communicator::fail_timeout(Clock::duration waited) const {
  std::string missing;
  for (const int member : std::span(group().peers).subspan(arrived_)) {
    if (has_reached(group().line(member), epoch_)) continue;
    const int chip = group().chip(member);
    const std::optional<RecordedCall> last = read_record(memory_->call_record(chip));
    missing += fmt::format("{}chip {} (last called: {})", missing.empty() ? "" : ", ", chip,
                           last ? to_string(*last, *mesh_) : "changing just now");
  }
  fail(Errc::timeout, "chip {} waited {:.3f} s in {} (step {}, {}) for {}", chip_,
       std::chrono::duration<double>(waited).count(), describe_call(), step_,
       stage_ == Stage::entry ? "at its entry" : "at its exit", missing);
}

}  // namespace weft
