#include "transport/network/network_tier.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include <weft/tensor/error.hpp>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "transport/job/control_format.hpp"
#include "transport/reduce/reduce.hpp"

namespace weft {

namespace {

std::string why_no_wire(const WireStatus& status) {
  if (status.state == WireState::up) return {};
  const char* const what = status.state == WireState::lost ? "is lost" : "isn't connected yet";
  return fmt::format(", whose wire {}{}{}", what, status.why.empty() ? "" : ": ", status.why);
}

}  // namespace

NetworkTier::NetworkTier(JobMemory& memory, const Mesh& mesh, int position, Wires& wires,
                         const Recorder& recorder, WaitPolicy policy, OnLoss on_loss)
    : memory_(&memory),
      mesh_(&mesh),
      position_(position),
      chip_(mesh.device_at(position)),
      wires_(&wires),
      recorder_(recorder),
      policy_(policy),
      on_loss_(std::move(on_loss)),
      arena_(memory.arena(chip_on_host(mesh, position))) {
  for (const WirePeer& peer : wires_->peers()) {
    Remote& remote = remotes_.emplace_back();
    remote.chip = static_cast<int>(peer.end.chip);
    remote.is_twin = are_twins(mesh, position, mesh.position_of(remote.chip));
  }
}

NetworkTier::~NetworkTier() {
  if (call_ != nullptr) wires_->close();
}

std::unique_ptr<const TierCall> NetworkTier::prepare(const CollectiveCall& call) {
  auto prepared = std::make_unique<NetworkCall>();
  const auto members = mesh_->group(position_, call.atoms);
  prepared->group_size = static_cast<int>(members.size());
  prepared->index = static_cast<int>(mesh_->index_in(position_, call.atoms));
  for (std::size_t i = 1; i < members.size(); ++i) {
    const int member = prepared->member_of(i - 1);
    const int chip = mesh_->device_at(static_cast<int>(members[static_cast<std::size_t>(member)]));
    const auto found = std::ranges::find(remotes_, chip, &Remote::chip);
    if (found == remotes_.end()) {
      fail(Errc::unavailable, "{} '{}': chip {} has no wire to chip {} of its group",
           to_string(call.kind), call.name, chip_, chip);
    }
    prepared->wires.push_back(static_cast<int>(found - remotes_.begin()));
  }
  prepared->plan(call);
  return prepared;
}

const WireStatus& NetworkTier::status(std::size_t peer) const {
  return wires_->status(call_->wires[peer]);
}

void NetworkTier::start(const StartedCall& started, const TierCall& call) {
  started_ = &started;
  call_ = static_cast<const NetworkCall*>(&call);
  stage_ = 0;
  has_header_.assign(call_->wires.size(), false);
  arrival_ = {};
  wait_begin_ = 0;
  if (call_->scratch_bytes > scratch_bytes_) {
    try {
      scratch_.reset();
      scratch_ = std::make_unique_for_overwrite<std::byte[]>(call_->scratch_bytes);
      scratch_bytes_ = call_->scratch_bytes;
    } catch (const std::bad_alloc&) {
      scratch_bytes_ = 0;
      fail(Errc::no_space, "{} needs {} bytes for what other hosts send",
           to_string(started, *mesh_), call_->scratch_bytes);
    }
  }
  post_receives();
  const CommitLine& line = memory_->commit_line(chip_on_host(*mesh_, position_));
  const CallHeader header =
      make_header(started.number, started.signature, line.step.load(std::memory_order_relaxed),
                  started.call->words(), started.call->name());
  for (const int wire : call_->wires) {
    Remote& remote = remotes_[static_cast<std::size_t>(wire)];
    remote.sent = header;
    wires_->send(wire, std::as_bytes(std::span(&remote.sent, 1)));
  }
  post_sends();
  wires_->progress();
  for (const ParcelCopy& copy : call_->stages[0].copies) {
    std::memcpy(arena_ + copy.to, arena_ + copy.from, copy.bytes);
  }
}

/// Posts the receives of all stages. A later stage may receive into an operand of an earlier stage:
/// the bytes that arrive were computed from that operand, so the operand was sent before.
void NetworkTier::post_receives() {
  for (std::size_t peer = 0; peer < call_->wires.size(); ++peer) {
    const int wire = call_->wires[peer];
    Remote& remote = remotes_[static_cast<std::size_t>(wire)];
    wires_->receive(wire, std::as_writable_bytes(std::span(&remote.received, 1)));
    for (const NetworkStage& stage : call_->stages) {
      for_each_post(stage.received[peer], arena_, scratch_.get(),
                    [&](std::span<std::byte> into) { wires_->receive(wire, into); });
    }
  }
}

void NetworkTier::post_sends() {
  const NetworkStage& stage = call_->stages[stage_];
  for (std::size_t peer = 0; peer < call_->wires.size(); ++peer) {
    const Parcel& parcel = stage.sent[peer];
    if (parcel.is_in_scratch) {
      std::byte* to = scratch_.get() + parcel.scratch;
      for (const ParcelPiece& piece : parcel.pieces) {
        std::memcpy(to, arena_ + piece.offset, piece.bytes);
        to += piece.bytes;
      }
    }
    for_each_post(parcel, arena_, scratch_.get(), [&](std::span<const std::byte> bytes) {
      wires_->send(call_->wires[peer], bytes);
    });
  }
}

/// Copies and adds what has arrived for the stage.
void NetworkTier::perform_stage() {
  const NetworkStage& stage = call_->stages[stage_];
  if (stage_ > 0) {
    for (const ParcelCopy& copy : stage.copies) {
      std::memcpy(arena_ + copy.to, arena_ + copy.from, copy.bytes);
    }
  }
  std::vector<std::byte*> operands(static_cast<std::size_t>(call_->group_size));
  for (const NetworkReduction& reduction : stage.reductions) {
    operands[static_cast<std::size_t>(call_->index)] = arena_ + reduction.own;
    for (std::size_t peer = 0; peer < call_->wires.size(); ++peer) {
      operands[static_cast<std::size_t>(call_->member_of(peer))] =
          scratch_.get() + stage.received[peer].scratch + reduction.at;
    }
    std::byte* const to[] = {arena_ + reduction.to};
    reduce(call_->reduce, call_->dtype, {operands}, {to}, reduction.count);
  }
  if (!stage.reductions.empty()) return;
  for (const Parcel& parcel : stage.received) {
    if (!parcel.is_in_scratch) continue;
    const std::byte* from = scratch_.get() + parcel.scratch;
    for (const ParcelPiece& piece : parcel.pieces) {
      std::memcpy(arena_ + piece.offset, from, piece.bytes);
      from += piece.bytes;
    }
  }
}

bool NetworkTier::has_received(std::size_t peer, std::size_t posts_left) const {
  return status(peer).receives <= posts_left;
}

bool NetworkTier::is_complete(std::size_t peer) const {
  return has_header_[peer] && has_received(peer, call_->posts_from(stage_ + 1, peer)) &&
         ((stage_ < call_->stages.size() && !call_->overwrites_sent) || status(peer).sends == 0);
}

/// Continues as far as the data that has arrived permits. Returns whether the collective has ended.
bool NetworkTier::advance() {
  for (std::size_t peer = 0; peer < call_->wires.size(); ++peer) {
    if (!has_header_[peer] && has_received(peer, call_->posts_from(0, peer))) take_header(peer);
  }
  for (;;) {
    missing_ = awaited();
    if (missing_ < call_->wires.size()) return false;
    if (stage_ == call_->stages.size()) return true;
    perform_stage();
    if (++stage_ < call_->stages.size()) {
      post_sends();
      has_moved_ |= wires_->progress();
    }
  }
}

/// Returns the first peer, in group order after this chip, for which the stage must still wait; the
/// number of peers if there is none.
std::size_t NetworkTier::awaited() const {
  std::size_t peer = 0;
  while (peer < call_->wires.size() && is_complete(peer)) ++peer;
  return peer;
}

bool NetworkTier::poll() {
  has_moved_ = wires_->progress();
  if (advance()) {
    end_wait();
    call_ = nullptr;
    return true;
  }
  note_wait();
  report_losses();
  if (memory_->aborted()) {
    fail(Errc::peer_lost, "{}; chip {} was in {} (step {}), waiting for chip {}",
         memory_->abort_reason(), chip_, to_string(*started_, *mesh_), started_->step,
         remotes_[static_cast<std::size_t>(call_->wires[missing_])].chip);
  }
  return false;
}

void NetworkTier::take_header(std::size_t peer) {
  Remote& remote = remotes_[static_cast<std::size_t>(call_->wires[peer])];
  const std::optional<RecordedCall> called = read_header(remote.received);
  if (!called) {
    fail(Errc::corrupt, "at step {} chip {} received bytes from chip {} that aren't a collective",
         started_->step, chip_, remote.chip);
  }
  remote.last = *called;
  if (remote.received.signature != started_->signature) {
    fail(Errc::program_divergence, "at step {} chip {} called {}, but chip {} called {}",
         started_->step, chip_, to_string(*started_, *mesh_), remote.chip,
         to_string(*called, *mesh_));
  }
  has_header_[peer] = true;
  remote.told = std::max(remote.told, remote.received.commit);
  if (remote.is_twin) publish_far();
}

/// Publishes the last step that all twins of this chip have reported as committed (see
/// commits.hpp).
void NetworkTier::publish_far() const {
  const int hosts = mesh_->size() / chips_per_host(*mesh_);
  int twins = 0;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const Remote& remote : remotes_) {
    if (!remote.is_twin) continue;
    ++twins;
    least = std::min(least, remote.told);
  }
  CommitLine& line = memory_->commit_line(chip_on_host(*mesh_, position_));
  if (twins < hosts - 1 || line.far.load(std::memory_order_relaxed) >= least) return;
  line.far.store(least, std::memory_order_release);
  light_fence();
  if (line.sleepers.load(std::memory_order_relaxed) == 0) return;
  line.woken.fetch_add(1, std::memory_order_seq_cst);
  wake_all(line.woken);
}

void NetworkTier::note_wait() {
  if (wait_begin_ == 0 && recorder_.events.is_on()) wait_begin_ = recorder_.events.now();
  if (wait_begin_ != 0) {
    arrival_.last_chip = remotes_[static_cast<std::size_t>(call_->wires[missing_])].chip;
  }
}

/// Records how long the wait took, and that the chip that was awaited last has arrived last.
void NetworkTier::end_wait() {
  if (wait_begin_ == 0) return;
  arrival_.waited = recorder_.events.now() - std::exchange(wait_begin_, 0);
}

void NetworkTier::report_losses() {
  for (std::size_t peer = 0; peer < call_->wires.size(); ++peer) {
    Remote& remote = remotes_[static_cast<std::size_t>(call_->wires[peer])];
    if (remote.is_lost || is_complete(peer) || status(peer).state != WireState::lost) continue;
    remote.is_lost = true;
    if (on_loss_) on_loss_({.chip = chip_, .peer = remote.chip, .why = status(peer).why});
  }
}

void NetworkTier::wait() {
  wait(policy_.spins > 0, [this](int chip) {
    recorder_.board.waiting_for(chip);
    return true;
  });
}

bool NetworkTier::wait_beside(const std::function<bool(int chip)>& goes_on) {
  return wait(false, goes_on);
}

bool NetworkTier::wait(bool may_yield, const std::function<bool(int chip)>& goes_on) {
  std::optional<Clock::time_point> since;
  while (!poll()) {
    const Clock::time_point now = Clock::now();
    if (!since) since = now;
    if (!goes_on(remotes_[static_cast<std::size_t>(call_->wires[missing_])].chip)) return false;
    const Clock::duration waited = now - *since;
    if (waited >= policy_.deadline) fail_timeout(waited);
    if (has_moved_) continue;
    if (may_yield && waited < policy_.yield_for) {
      sched_yield();
      continue;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(policy_.deadline - waited);
    wires_->wait(std::min(kSleepSlice, left));
  }
  return true;
}

void NetworkTier::fail_timeout(Clock::duration waited) const {
  std::string missing;
  bool at_entry = false;
  for (std::size_t peer = 0; peer < call_->wires.size(); ++peer) {
    if (is_complete(peer)) continue;
    at_entry = at_entry || !has_header_[peer];
    const Remote& remote = remotes_[static_cast<std::size_t>(call_->wires[peer])];
    missing += fmt::format("{}chip {} (last called: {}){}", missing.empty() ? "" : ", ",
                           remote.chip, to_string(remote.last, *mesh_), why_no_wire(status(peer)));
  }
  fail(Errc::timeout, "chip {} waited {:.3f} s in {} (step {}, {}) for {}", chip_,
       std::chrono::duration<double>(waited).count(), to_string(*started_, *mesh_), started_->step,
       at_entry ? "at its entry" : "at its exit", missing);
}

}  // namespace weft
