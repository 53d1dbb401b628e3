/// In a sync of a group, each chip increments its own epoch word, and then waits until all others
/// have incremented theirs. The words of group `mask` are in one GroupLine per chip. Invariants:
///
/// 1. A chip's epoch word is written only by that chip. It is incremented at each sync of the group
///    and never reset. It is compared by signed difference, so it may wrap.
/// 2. All chips of a group pass through the same syncs in the same order. A chip announces epoch e
///    + 1 only after it has seen epoch e of all others, so no two epochs are more than one apart.
/// 3. A chip that announces epoch e has ended all its reads and writes that the syncs before e
///    ordered. The store releases them, and the peer's load acquires them.
/// 4. From 2 and 3: when a chip has passed sync e, no chip reads mailboxes of sync e - 1 any more.
///    Therefore there are two sets of mailboxes, chosen by the parity of the epoch, and a
///    collective whose results pass through them needs no sync at its end.
/// 5. The signature of a call and of all messages before it (see slot_call.hpp) is announced in one
///    word with the epoch, and compared before any data of the peer is used. A peer that is an
///    epoch ahead has compared this chip's signature with its own, because it would not have
///    continued if they had differed.
/// 6. All sleepers of a group sleep on one word, `woken` of its first chip, and are woken once per
///    sync. A chip that goes to sleep counts itself in `sleepers` and reads `woken`. After a heavy
///    fence it reads the epochs once more, and sleeps while `woken` doesn't change. A chip that
///    announces an epoch then issues a light fence and reads the others' epochs. If all have
///    arrived, it reads `sleepers`, and if there are any, sets `woken` to the epoch and wakes them.
///    No wake is missed: a chip whose epoch a sleeper didn't see reads `sleepers` only after the
///    sleeper was counted, and so does each chip that has seen this chip's epoch. One of these
///    chips is the last to see all epochs. A process that is killed in its sleep leaves `sleepers`
///    too high, which only costs one call per sync.
/// 7. No sleep is longer than kSleepSlice, so an abort or a deadline is noticed without a wake.
/// 8. Between the last arrival and its own next announcement, a chip loads no line that a peer has
///    read since the chip wrote to it. The chip has copies of its own epoch and mail. If source and
///    signature fit in a line, prepare() has chosen the functions for the line: line_call.hpp.
/// 9. A collective that threw program_divergence, or that timed out and wasn't continued, stays the
///    chip's current one. It announces nothing more, so no later word is taken for an earlier one.

#include "transport/collectives/shared_memory_tier.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include <weft/tensor/error.hpp>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "transport/collectives/algorithm.hpp"
#include "transport/collectives/call_record.hpp"
#include "transport/job/control_format.hpp"

namespace weft {
namespace {

/// A yield that took longer than this gave the core to another program, it is assumed. Such a
/// program may keep the core for long, but a thread that wakes from sleep gets the core at once. So
/// the next kYieldsToSkip waits sleep instead of yielding.
constexpr std::chrono::nanoseconds kLongYield = std::chrono::milliseconds(2);
constexpr int kYieldsToSkip = 100;

std::uint64_t announcement(std::uint32_t epoch, std::uint64_t signature) {
  return std::uint64_t{epoch} << 32 | (signature & 0xffff'ffffU);
}

}  // namespace

SharedMemoryTier::SharedMemoryTier(JobMemory& memory, const Mesh& mesh, int position,
                                   const Recorder& recorder, WaitPolicy policy)
    : memory_(&memory),
      mesh_(&mesh),
      position_(position),
      chip_(chip_on_host(mesh, position)),
      device_(mesh.device_at(position)),
      recorder_(recorder),
      policy_(policy) {}

/// Publishes how many messages the chip has passed, so that the chip's next tier can continue from
/// there.
SharedMemoryTier::~SharedMemoryTier() {
  for (const auto& group : groups_) publish_messages(*group->progress, *group->own);
}

Group& SharedMemoryTier::find_group(AtomList atoms) {
  for (const auto& group : groups_) {
    if (group->atoms == atoms) return *group;
  }
  auto group = std::make_unique<Group>(*memory_, *mesh_, position_, atoms);
  for (const auto& other : groups_) {
    if (other->mask == group->mask) group->progress = other->progress;
  }
  return *groups_.emplace_back(std::move(group));
}

std::unique_ptr<const TierCall> SharedMemoryTier::prepare(const CollectiveCall& call) {
  Group& group = find_group(call.atoms);
  const Algorithm algorithm = choose_algorithm(call, group.size(), memory_->crowded());
  auto prepared = std::make_unique<Call>();
  prepared->group = &group;
  if (algorithm == Algorithm::slots) {
    prepared->message = std::make_unique<const SlotCall>(call, group, *memory_);
    return prepared;
  }
  prepared->schedule = make_schedule(algorithm, call, group.size(), group.index);
  if (is_in_lines(algorithm, call, group.size())) {
    prepared->line = LineCall(algorithm, call, group.size(), memory_->arena(chip_));
  } else if (algorithm == Algorithm::mailbox) {
    memory_->reserve_mailboxes(group.mask, chip_);
  }
  return prepared;
}

void SharedMemoryTier::start(const StartedCall& started, const TierCall& call) {
  started_ = &started;
  call_ = static_cast<const Call*>(&call);
  group_ = call_->group;
  stage_ = 0;
  arrival_ = {};
  wait_begin_ = longest_ = 0;
  if (call_->message) [[unlikely]]
    return start_message();
  epoch_ = group_->progress->epoch + 1;
  if (!call_->line) {
    perform_stage(group_->mailboxes[epoch_ % 2]);
  } else if (call_->line->has_mail()) {
    const Bytes16 mail = call_->line->mail();
    std::memcpy(group_->mails[static_cast<std::size_t>(group_->index)].bytes, &mail, sizeof mail);
    std::memcpy(group_->own->mailbox[epoch_ % 2], &mail, sizeof mail);
  }
  announce();
}

void SharedMemoryTier::perform_stage(std::span<std::byte* const> mailboxes) const {
  if (call_->schedule.stages[stage_].empty()) return;
  perform(call_->schedule, stage_, {group_->arenas, mailboxes, group_->index});
}

inline std::uint64_t SharedMemoryTier::expected_announcement() const {
  return announcement(epoch_, started_->signature ^ group_->progress->history);
}

inline void SharedMemoryTier::announce() {
  arrived_ = 0;
  group_->progress->epoch = epoch_;
  if (group_->peers.empty()) return;
  group_->own->announced.store(expected_announcement(), std::memory_order_release);
  light_fence();
}

/// Returns the group index of the first peer that this chip hasn't seen at this epoch or message.
int SharedMemoryTier::awaited() const { return group_->peers[arrived_].member; }

inline bool SharedMemoryTier::all_arrived() {
  const bool has_mail = call_->line && call_->line->has_mail();
  for (; arrived_ < group_->peers.size(); ++arrived_) {
    Peer& peer = group_->peers[arrived_];
    peer.announced = peer.line->announced.load(std::memory_order_acquire);
    if (!has_reached(peer.announced, epoch_)) {
      missing_ = arrived_;
      return false;
    }
    if (!has_mail) continue;
    std::memcpy(group_->mails[static_cast<std::size_t>(peer.member)].bytes,
                peer.line->mailbox[epoch_ % 2], kLineMailboxBytes);
  }
  return true;
}

bool SharedMemoryTier::is_ready() { return call_->message ? is_message_ready() : all_arrived(); }

inline bool SharedMemoryTier::pass_sync() {
  if (!all_arrived()) {
    if (wait_begin_ == 0 && recorder_.events.is_on()) wait_begin_ = recorder_.events.now();
    fail_if_aborted();
    return false;
  }
  wake_sleepers();
  if (wait_begin_ != 0) end_wait();
  if (stage_ == 0) require_same_call();
  return true;
}

inline void SharedMemoryTier::wake_sleepers() const {
  GroupLine& first = *group_->first;
  if (first.sleepers.load(std::memory_order_relaxed) != 0 &&
      first.woken.exchange(epoch_, std::memory_order_seq_cst) != epoch_) {
    wake_all(first.woken);
  }
}

inline void SharedMemoryTier::require_same_call() const {
  const std::uint64_t expected = expected_announcement();
  for (const Peer& peer : group_->peers) {
    if (peer.announced != expected && epoch_of(peer.announced) == epoch_) {
      fail_divergence(peer.member, started_->number);
    }
  }
}

bool SharedMemoryTier::poll() {
  if (call_->message) [[unlikely]]
    return poll_message();
  if (call_->line) {
    if (!pass_sync()) return false;
    stage_ = 1;
    if (!call_->line->finish(group_->mail_bytes)) perform_stage(group_->mail_bytes);
    return true;
  }
  while (pass_sync()) {
    ++stage_;
    perform_stage(group_->mailboxes[epoch_ % 2]);
    if (stage_ == call_->schedule.sync_count()) return true;
    ++epoch_;
    announce();
  }
  return false;
}

/// Records the end of a wait. The chip for which this collective has waited longest is recorded as
/// the one that came last.
void SharedMemoryTier::end_wait() {
  const std::uint64_t waited = recorder_.events.now() - std::exchange(wait_begin_, 0);
  arrival_.waited += waited;
  if (waited <= longest_) return;
  longest_ = waited;
  arrival_.last_chip = group_->device(group_->peers[missing_].member);
}

void SharedMemoryTier::fail_if_aborted() const {
  if (memory_->aborted()) {
    fail(Errc::peer_lost, "{}; chip {} was in {} (step {}), waiting for chip {}",
         memory_->abort_reason(), device_, to_string(*started_, *mesh_), started_->step,
         group_->device(awaited()));
  }
}

void SharedMemoryTier::wait() {
  std::optional<Clock::time_point> since;
  while (!poll()) {
    if (!spin()) await_peers(since);
  }
}

/// Spins until all peers have arrived. Returns whether they have. Pauses between loads, because a
/// core that loads a line without a pause takes the line from its writer. Stores nothing, because
/// the stores would queue behind the announcement, whose line a peer may still have, and would
/// delay the next announcement.
bool SharedMemoryTier::spin() {
  if (call_->message) return spin_for_message();
  int left = policy_.spins;
  for (std::size_t i = arrived_; i < group_->peers.size(); ++i) {
    const GroupLine& line = *group_->peers[i].line;
    if (has_reached(line, epoch_)) continue;
    do {
      if (left-- <= 0) return false;
      pause_cpu();
    } while (!has_reached(line, epoch_));
    missing_ = i;
  }
  return true;
}

/// Waits until all peers have arrived or the job is aborted. The first call for a collective sets
/// `since`, from which the time until the deadline counts.
void SharedMemoryTier::await_peers(std::optional<Clock::time_point>& since) {
  if (!since) since = Clock::now();
  recorder_.board.waiting_for(group_->device(awaited()));
  Clock::time_point now = *since;
  while (!is_ready() && !memory_->aborted()) {
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
    if (now - before >= kSleepSlice) find_divergence(now - *since);
  }
}

void SharedMemoryTier::sleep(Clock::duration longest) {
  if (call_->message) return sleep_for_message(longest);
  GroupLine& first = *group_->first;
  first.sleepers.fetch_add(1, std::memory_order_seq_cst);
  const std::uint32_t woken = first.woken.load(std::memory_order_seq_cst);
  heavy_fence();
  if (!all_arrived()) {
    sleep_on(first.woken, woken, std::min<std::chrono::nanoseconds>(kSleepSlice, longest));
  }
  first.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace weft
