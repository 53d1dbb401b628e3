#pragma once
/// ArenaBuffer: a buffer at one offset in the arenas of the worker's chips.

#include <cstdint>
#include <memory>

#include <weft/actors/worker/buffer_pool.hpp>
#include <weft/spmd/tensor/runtime.hpp>

namespace weft {

/// Where a buffer's block goes back to.
enum class BlockKind : std::uint8_t { plain, state };

/// Owns its block. A version of state owns the one before it, too: the next is written over that,
/// so that two buffers take turns.
class ArenaBuffer : public Buffer {
 public:
  ArenaBuffer(const TensorType& type, const Sharding& sharding, std::shared_ptr<BufferPool> pool,
              BlockKind kind, std::uint64_t offset, std::int64_t bytes)
      : Buffer(type, sharding),
        pool_(std::move(pool)),
        kind_(kind),
        offset_(offset),
        bytes_(bytes) {}
  ~ArenaBuffer() override {
    if (kind_ == BlockKind::state) {
      pool_->free_state(offset_, bytes_, last_run_);
    } else {
      pool_->free(offset_, bytes_, last_run_);
    }
  }
  ArenaBuffer(const ArenaBuffer&) = delete;
  ArenaBuffer& operator=(const ArenaBuffer&) = delete;

  bool is_of(const BufferPool& pool) const { return pool_.get() == &pool; }
  std::uint64_t offset() const { return offset_; }
  std::uint64_t last_run() const { return last_run_; }
  void used_by(std::uint64_t run) { last_run_ = run; }

  /// `before`, of the same type and layout, is replaced by this in `step`.
  void replaces(std::shared_ptr<ArenaBuffer> before, std::uint64_t step) {
    before->replaced_in_ = step;
    before_ = std::move(before);
  }
  /// The version before this one, if it may be written over: nobody else has it, and it was
  /// replaced before `step`, which the chips commit before they write. To be asked once.
  std::shared_ptr<ArenaBuffer> take_before(std::uint64_t step) {
    auto before = std::move(before_);
    const bool may_write =
        before != nullptr && before.use_count() == 1 && before->replaced_in_ < step;
    return may_write ? before : nullptr;
  }

 private:
  std::shared_ptr<BufferPool> pool_;
  const BlockKind kind_;
  const std::uint64_t offset_;
  const std::int64_t bytes_;
  std::uint64_t last_run_ = 0;
  std::shared_ptr<ArenaBuffer> before_;
  std::uint64_t replaced_in_ = 0;  // step
};

}  // namespace weft
