#include "transport/lanes/peers.hpp"

#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {

Peers::Peers(const PeerTable& table, PeerMemory own)
    : table_(&table), own_(std::make_unique<PeerMemory>(std::move(own))) {
  newest_[self()].store(own_.get(), std::memory_order_release);
}

Peers::~Peers() = default;

PeerMemory& Peers::current(std::uint32_t slot) {
  WEFT_CHECK(slot < kPeerCountMax, slot);
  PeerMemory* known = newest_[slot].load(std::memory_order_acquire);
  const std::uint32_t incarnation = table_->life(slot).incarnation;
  if (known != nullptr && known->peer().incarnation == incarnation) return *known;

  const std::lock_guard lock(mutex_);
  Mapping& mapping = mappings_[slot];
  if (mapping.newest == nullptr || mapping.newest->peer().incarnation != incarnation) {
    auto opened = std::make_unique<PeerMemory>(
        PeerMemory::open(table_->system(), {.slot = slot, .incarnation = incarnation}));
    mapping.before = std::exchange(mapping.newest, std::move(opened));
    newest_[slot].store(mapping.newest.get(), std::memory_order_release);
  }
  return *mapping.newest;
}

PeerMemory& Peers::mapped(std::uint32_t slot) const {
  PeerMemory* known = newest_[slot].load(std::memory_order_acquire);
  WEFT_CHECK(known != nullptr, slot);
  return *known;
}

}  // namespace weft
