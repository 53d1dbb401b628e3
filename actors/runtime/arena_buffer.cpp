#include "actors/runtime/arena_buffer.hpp"

#include <utility>

namespace weft {
namespace {

const ChipSet kNoChips;

}  // namespace

std::shared_ptr<ArenaBuffer> next_version(std::shared_ptr<ArenaBuffer> now,
                                          const ChipSet& may_overwrite, std::uint64_t step,
                                          const VersionLayout& layout,
                                          const std::shared_ptr<BufferPool>& pool) {
  if (are_all(may_overwrite)) return now;
  const bool is_alike = layout.type == now->type() && layout.sharding == now->sharding();
  const bool overwrites = is_alike && now->may_overwrite(may_overwrite);
  const ChipSet& overwriters = overwrites ? may_overwrite : kNoChips;
  std::shared_ptr<ArenaBuffer> next = now->take_before(step, overwriters);
  if (!is_alike || next == nullptr) {
    next = std::make_shared<ArenaBuffer>(layout.type, layout.sharding, pool, BlockKind::state,
                                         pool->allocate_state(layout.bytes), layout.bytes);
  }
  if (is_alike) next->replaces(std::move(now), step, overwriters);
  return next;
}

}  // namespace weft
