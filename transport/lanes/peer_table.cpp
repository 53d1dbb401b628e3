#include "transport/lanes/peer_table.hpp"

#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr std::size_t kTableBytes = sizeof(TableHeader) + kPeerCountMax * sizeof(PeerRow);

/// The process that has claimed slot s holds the lock on byte kClaimByte + s of the table.
constexpr std::uint32_t kClaimByte = 1;

std::string prefix_of(std::string_view system) { return fmt::format("weft-{}-", system); }

}  // namespace

PeerTable::PeerTable(Segment segment, std::string system)
    : segment_(std::move(segment)), system_(std::move(system)) {}

std::string PeerTable::segment_name(std::string_view system) { return prefix_of(system) + "peers"; }

PeerTable PeerTable::create(std::string_view system) {
  Segment segment = Segment::create(segment_name(system), kTableBytes);
  try {
    segment.reserve(0, kTableBytes);
  } catch (...) {
    Segment::remove(segment.name());
    throw;
  }
  auto* header = new (segment.data()) TableHeader{};
  header->version = kLaneVersion;
  header->peer_count_max = kPeerCountMax;
  std::atomic_ref(header->magic).store(kPeerTableMagic, std::memory_order_release);
  return PeerTable(std::move(segment), std::string(system));
}

PeerTable PeerTable::open(std::string_view system) {
  Segment segment = Segment::open(segment_name(system), false, kTableBytes);
  auto& header = *reinterpret_cast<TableHeader*>(segment.data());
  const std::uint64_t magic = std::atomic_ref(header.magic).load(std::memory_order_acquire);
  if (magic != kPeerTableMagic) {
    fail(magic == 0 ? Errc::not_found : Errc::corrupt, "segment {} {}", segment.name(),
         magic == 0 ? "is still being made" : "is no table of an actor system's processes");
  }
  if (header.version != kLaneVersion) {
    fail(Errc::version,
         "segment {}: a table of version {}, but this program reads version {}; build both "
         "programs with the same weft",
         segment.name(), header.version, kLaneVersion);
  }
  return PeerTable(std::move(segment), std::string(system));
}

int PeerTable::remove(std::string_view system) noexcept {
  int count = 0;
  try {
    for (const std::string& name : Segment::list(prefix_of(system))) {
      count += Segment::remove(name) ? 1 : 0;
    }
  } catch (const Error&) {
    // Names that can't be listed can't be removed either.
  }
  return count;
}

PeerRow& PeerTable::row(std::uint32_t slot) const {
  WEFT_CHECK(slot < kPeerCountMax, slot);
  return reinterpret_cast<PeerRow*>(segment_.data() + sizeof(TableHeader))[slot];
}

PeerLife PeerTable::life(std::uint32_t slot) const noexcept {
  return PeerLife::of(row(slot).life.load(std::memory_order_seq_cst));
}

bool PeerTable::is_alive(PeerId peer) const noexcept {
  return life(peer.slot) == PeerLife{.state = PeerState::alive, .incarnation = peer.incarnation};
}

/// Takes the slot if it is free, and sets `peer`. Returns whether it did.
bool PeerTable::take(std::uint32_t slot, PeerId& peer) noexcept {
  const PeerLife before = life(slot);
  if (before.state != PeerState::free) return false;
  peer = {.slot = slot, .incarnation = before.incarnation + 1};
  std::uint32_t expected = before.word();
  const bool is_taken = row(slot).life.compare_exchange_strong(
      expected, PeerLife{.state = PeerState::joining, .incarnation = peer.incarnation}.word(),
      std::memory_order_seq_cst);
  if (is_taken) row(slot).host.store(0, std::memory_order_relaxed);
  return is_taken;
}

PeerId PeerTable::add() {
  PeerId peer;
  for (std::uint32_t slot = 0; slot < kPeerCountMax; ++slot) {
    if (take(slot, peer)) return peer;
  }
  fail_full();
}

PeerClaim PeerTable::claim() {
  PeerId peer;
  for (std::uint32_t slot = 0; slot < kPeerCountMax; ++slot) {
    if (life(slot).state != PeerState::free) continue;
    // The process takes the lock before the slot. So if a slot is `joining` and unlocked, the
    // keeper gave it out, or the process that claimed it has died.
    std::optional<LifeLock> lock = LifeLock::take(segment_, kClaimByte + slot);
    if (!lock || !take(slot, peer)) continue;
    row(slot).role.store(static_cast<std::uint32_t>(PeerRole::attached), std::memory_order_seq_cst);
    return {.peer = peer, .life = std::move(*lock)};
  }
  fail_full();
}

void PeerTable::give_back(PeerId claimed) noexcept {
  std::uint32_t expected =
      PeerLife{.state = PeerState::joining, .incarnation = claimed.incarnation}.word();
  row(claimed.slot).role.store(0, std::memory_order_relaxed);
  row(claimed.slot)
      .life.compare_exchange_strong(
          expected, PeerLife{.state = PeerState::free, .incarnation = claimed.incarnation}.word(),
          std::memory_order_seq_cst);
}

PeerRole PeerTable::role(std::uint32_t slot) const noexcept {
  return static_cast<PeerRole>(row(slot).role.load(std::memory_order_seq_cst));
}

void PeerTable::set_leaving(std::uint32_t slot) noexcept {
  row(slot).role.store(static_cast<std::uint32_t>(PeerRole::leaving), std::memory_order_seq_cst);
}

bool PeerTable::is_claimed(std::uint32_t slot) const {
  return LifeLock::is_held(segment_, kClaimByte + slot);
}

void PeerTable::fail_full() {
  fail(Errc::no_space,
       "the actor system has {} processes, the most that one can have; place more actors in each "
       "process",
       kPeerCountMax);
}

void PeerTable::mark(std::uint32_t slot, PeerState state) noexcept {
  if (state == PeerState::free) {
    row(slot).pid.store(0, std::memory_order_relaxed);
    row(slot).role.store(0, std::memory_order_relaxed);
  }
  row(slot).life.store(PeerLife{.state = state, .incarnation = life(slot).incarnation}.word(),
                       std::memory_order_seq_cst);
  if (state == PeerState::dead) header().deaths.fetch_add(1, std::memory_order_seq_cst);
}

void PeerTable::put(PeerId peer, PeerState state, PeerRole role, std::uint32_t host) noexcept {
  PeerRow& its = row(peer.slot);
  its.role.store(static_cast<std::uint32_t>(role), std::memory_order_relaxed);
  its.host.store(host, std::memory_order_relaxed);
  its.life.store(PeerLife{.state = state, .incarnation = peer.incarnation}.word(),
                 std::memory_order_seq_cst);
}

void PeerTable::set_host(std::uint32_t slot, std::uint32_t host) noexcept {
  row(slot).host.store(host, std::memory_order_relaxed);
}

std::uint32_t PeerTable::host(std::uint32_t slot) const noexcept {
  return row(slot).host.load(std::memory_order_relaxed);
}

std::uint32_t PeerTable::deaths() const noexcept {
  return header().deaths.load(std::memory_order_acquire);
}

void PeerTable::set_pid(std::uint32_t slot, std::int32_t pid) noexcept {
  row(slot).pid.store(pid, std::memory_order_relaxed);
}

std::int32_t PeerTable::pid(std::uint32_t slot) const noexcept {
  return row(slot).pid.load(std::memory_order_relaxed);
}

void PeerTable::set_settled(std::uint32_t by, PeerId dead) noexcept {
  row(by).settled[dead.slot].store(dead.incarnation, std::memory_order_release);
}

bool PeerTable::has_settled(std::uint32_t by, PeerId dead) const noexcept {
  return row(by).settled[dead.slot].load(std::memory_order_acquire) == dead.incarnation;
}

}  // namespace weft
