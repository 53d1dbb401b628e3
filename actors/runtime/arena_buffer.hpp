#pragma once
/// ArenaBuffer: a buffer in the arenas of the worker's chips.

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/runtime/buffer_pool.hpp"
#include "spmd/tensor/runtime.hpp"

namespace weft {

/// Where a block goes back to.
enum class BlockKind : std::uint8_t { plain, state };

/// Owns a block, which has one offset in the arenas of all the worker's chips.
class ArenaBlock {
 public:
  ArenaBlock(std::shared_ptr<BufferPool> pool, BlockKind kind, std::uint64_t offset,
             std::int64_t bytes)
      : pool_(std::move(pool)), kind_(kind), offset_(offset), bytes_(bytes) {}
  ~ArenaBlock() {
    if (kind_ == BlockKind::state) {
      pool_->free_state(offset_, bytes_, last_run_);
    } else {
      pool_->free(offset_, bytes_, last_run_);
    }
  }
  ArenaBlock(const ArenaBlock&) = delete;
  ArenaBlock& operator=(const ArenaBlock&) = delete;

  bool is_of(const BufferPool& pool) const { return pool_.get() == &pool; }
  std::uint64_t offset() const { return offset_; }
  std::uint64_t last_run() const { return last_run_; }
  void used_by(std::uint64_t run) { last_run_ = run; }

 private:
  std::shared_ptr<BufferPool> pool_;
  const BlockKind kind_;
  const std::uint64_t offset_;
  const std::int64_t bytes_;
  std::uint64_t last_run_ = 0;
};

/// Some of a worker's chips, by their number among them; empty: none.
using ChipSet = std::vector<bool>;

/// Lies in a block of its own. A version of state owns the one before it, too: the next is written
/// over that, so that two buffers take turns. Chips that needn't keep the version before write over
/// it, and stay in the block that they have.
class ArenaBuffer : public Buffer {
 public:
  ArenaBuffer(const TensorType& type, const Sharding& sharding, std::shared_ptr<BufferPool> pool,
              BlockKind kind, std::uint64_t offset, std::int64_t bytes)
      : Buffer(type, sharding),
        block_(std::make_shared<ArenaBlock>(std::move(pool), kind, offset, bytes)) {}

  bool is_of(const BufferPool& pool) const { return block_->is_of(pool); }
  std::uint64_t block_offset() const { return block_->offset(); }
  /// Where that chip has it.
  std::uint64_t offset(std::size_t chip) const {
    return overwritten_ != nullptr && overwriters_[chip] ? overwritten_->offset() : block_offset();
  }
  std::uint64_t last_run() const { return block_->last_run(); }
  void used_by(std::uint64_t run) {
    block_->used_by(run);
    if (overwritten_ != nullptr) overwritten_->used_by(run);
  }

  /// Whether these chips may write the next version over this one: where some have it in another
  /// block than the rest, they are those.
  bool may_overwrite(const ChipSet& chips) const {
    return overwritten_ == nullptr || overwriters_ == chips;
  }
  /// `before`, of the same type and layout, is replaced by this in `step`. `overwriters`, which it
  /// allows, write over it.
  void replaces(std::shared_ptr<ArenaBuffer> before, std::uint64_t step,
                const ChipSet& overwriters) {
    overwriters_ = overwriters;
    overwritten_ = overwriters.empty() ? nullptr : before->block_of_overwriters();
    if (overwritten_ == block_) overwritten_ = nullptr;
    before->replaced_in_ = step;
    before_ = std::move(before);
  }
  /// The version before this one, if it may be written over: nobody else has it, and it was
  /// replaced before `step`, which the chips commit before they write. `overwriters` won't, as they
  /// write over this one. To be asked once: this lets go of it.
  std::shared_ptr<ArenaBuffer> take_before(std::uint64_t step, const ChipSet& overwriters) {
    auto before = std::move(before_);
    const bool may_write =
        before != nullptr && before.use_count() == 1 && before->replaced_in_ < step;
    if (!may_write) return nullptr;
    // Its block may be where this one's, or a former one's, overwriters are.
    const bool is_whole = before->block_.use_count() == 1;
    return is_whole || !overwriters.empty() ? before : nullptr;
  }

 private:
  const std::shared_ptr<ArenaBlock>& block_of_overwriters() const {
    return overwritten_ != nullptr ? overwritten_ : block_;
  }

  std::shared_ptr<ArenaBlock> block_;
  std::shared_ptr<ArenaBlock> overwritten_;  // where the overwriters have it; null: in block_
  ChipSet overwriters_;
  std::shared_ptr<ArenaBuffer> before_;
  std::uint64_t replaced_in_ = 0;  // step
};

}  // namespace weft
