#pragma once
/// ArenaBuffer: a buffer in the arenas of the worker's chips.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "actors/runtime/buffer_pool.hpp"
#include "chips/engine/loaded_rows.hpp"
#include "spmd/tensor/runtime.hpp"

namespace weft {

/// Decides how the pool frees the block.
enum class BlockKind : std::uint8_t { plain, state };

/// Owns a block. The block has the same offset in the arenas of all the worker's chips.
class ArenaBlock {
 public:
  ArenaBlock(std::shared_ptr<BufferPool> pool, BlockKind kind, std::uint64_t offset,
             std::int64_t bytes)
      : pool_(std::move(pool)), kind_(kind), offset_(offset), bytes_(bytes) {}
  ~ArenaBlock() {
    if (kind_ == BlockKind::state && unneeded_since_) {
      pool_->free_old_state(offset_, bytes_, last_run_, *unneeded_since_);
    } else if (kind_ == BlockKind::state) {
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
  /// Records that the job can't return to the version in this block since step `step`. The block is
  /// only kept because it still has a reader.
  void unneeded_since(std::uint64_t step) { unneeded_since_ = step; }

 private:
  std::shared_ptr<BufferPool> pool_;
  const BlockKind kind_;
  const std::uint64_t offset_;
  const std::int64_t bytes_;
  std::uint64_t last_run_ = 0;
  std::optional<std::uint64_t> unneeded_since_;
};

/// A set of the worker's chips, as a bit for each chip number in the worker. An empty vector is the
/// empty set.
using ChipSet = std::vector<bool>;

inline bool are_all(const ChipSet& chips) {
  return !chips.empty() && std::ranges::find(chips, false) == chips.end();
}

/// A tensor's buffer, in its own block. A buffer that holds a version of state also owns the buffer
/// of the previous version. The next version is written to that older buffer, so two buffers
/// alternate. Chips that needn't keep the previous version are called overwriters: they write each
/// version over the previous one, in the same block.
class ArenaBuffer : public Buffer {
 public:
  ArenaBuffer(const TensorType& type, const Sharding& sharding, std::shared_ptr<BufferPool> pool,
              BlockKind kind, std::uint64_t offset, std::int64_t bytes)
      : Buffer(type, sharding),
        block_(std::make_shared<ArenaBlock>(std::move(pool), kind, offset, bytes)) {}

  bool is_of(const BufferPool& pool) const { return block_->is_of(pool); }
  std::uint64_t block_offset() const { return block_->offset(); }
  /// Returns the buffer's offset in the arena of chip number `chip`.
  std::uint64_t offset(std::size_t chip) const {
    return overwritten_ != nullptr && overwriters_[chip] ? overwritten_->offset() : block_offset();
  }
  std::uint64_t last_run() const { return block_->last_run(); }
  void used_by(std::uint64_t run) {
    block_->used_by(run);
    if (overwritten_ != nullptr) overwritten_->used_by(run);
  }

  /// Returns the items from which a loader has read the buffer's rows; null if no loader has.
  const std::shared_ptr<const RowOrigin>& origin() const { return origin_; }
  void came_from(std::shared_ptr<const RowOrigin> origin) { origin_ = std::move(origin); }

  /// Returns whether `chips` may write the next version over this one. If this version is in
  /// different blocks on its overwriters and on the other chips, only the same overwriters may do
  /// so.
  bool may_overwrite(const ChipSet& chips) const {
    return overwritten_ == nullptr || overwriters_ == chips;
  }
  /// Makes this the version that follows `before` and is written in `step`. Both must have the same
  /// type and layout. The chips in `overwriters` (see may_overwrite()) write it over `before`.
  void replaces(std::shared_ptr<ArenaBuffer> before, std::uint64_t step,
                const ChipSet& overwriters) {
    overwriters_ = overwriters;
    overwritten_ = overwriters.empty() ? nullptr : before->block_of_overwriters();
    if (overwritten_ == block_) overwritten_ = nullptr;
    before->replaced_in_ = step;
    before_ = std::move(before);
  }
  /// Gives up the previous version. Returns it if a run of `step` may overwrite it, else null. The
  /// run may overwrite it if it has no other owner and was replaced before `step`, because the
  /// chips commit `step` before they write. The chips in `overwriters` don't write to it, because
  /// they write over this version. May be called once.
  std::shared_ptr<ArenaBuffer> take_before(std::uint64_t step, const ChipSet& overwriters) {
    auto before = std::move(before_);
    if (before == nullptr || before->replaced_in_ >= step) return nullptr;
    // The block of `before` may also hold a later version on some chips: on the overwriters of this
    // version or of an earlier one.
    const bool is_whole = before->block_.use_count() == 1;
    if (before.use_count() > 1) {
      if (is_whole) before->block_->unneeded_since(before->replaced_in_);
      return nullptr;
    }
    return is_whole || !overwriters.empty() ? before : nullptr;
  }

 private:
  const std::shared_ptr<ArenaBlock>& block_of_overwriters() const {
    return overwritten_ != nullptr ? overwritten_ : block_;
  }

  std::shared_ptr<const RowOrigin> origin_;
  std::shared_ptr<ArenaBlock> block_;
  std::shared_ptr<ArenaBlock> overwritten_;  // the overwriters' block; null: block_
  ChipSet overwriters_;
  std::shared_ptr<ArenaBuffer> before_;
  std::uint64_t replaced_in_ = 0;  // the step in which the next version was written
};

/// The type and sharding of a tensor's next version, and the bytes of one chip's shard.
struct VersionLayout {
  const TensorType& type;
  const Sharding& sharding;
  std::int64_t bytes = 0;
};

/// Returns the buffer to which a run of `step` writes the version after `now`. It is `now` itself
/// if all chips may overwrite it, else the previous version if that isn't needed any more, else a
/// new buffer. `may_overwrite` contains the chips that needn't keep `now`.
std::shared_ptr<ArenaBuffer> next_version(std::shared_ptr<ArenaBuffer> now,
                                          const ChipSet& may_overwrite, std::uint64_t step,
                                          const VersionLayout& layout,
                                          const std::shared_ptr<BufferPool>& pool);

}  // namespace weft
