#pragma once
/// DeviceCopies: the blocks of a chip that are in the chip's own memory.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <weft/tensor/type.hpp>

#include "chips/pjrt/client.hpp"

namespace weft {

/// A block is known by its offset in the arena, which is the host's side of it. The newest bytes
/// are on the device if a run has written them there, and else in the arena. A block that holds a
/// new version of the state is a *version* until it has landed, that is, until the arena has its
/// bytes too.
///
/// The chip's thread binds, puts and lands blocks. The loop's thread forgets and reads those that
/// no current run uses.
class DeviceCopies {
 public:
  using Held = std::shared_ptr<const pjrt::Buffer>;

  /// `arena` is the chip's, and must outlive the object.
  DeviceCopies(std::shared_ptr<const pjrt::Client> client, std::size_t device, std::byte* arena);

  /// Returns the block on the device. Copies it there from the arena if it isn't there as this
  /// type. Throws no_space, with the bytes needed and present.
  Held bind(std::uint64_t offset, const TensorType& type);
  /// Puts the result of a run in the place of the blocks that it overlaps.
  void put(std::uint64_t offset, const TensorType& type, pjrt::Buffer buffer, bool is_version);
  /// Frees the blocks on the device that overlap the range, whose newest bytes are in the arena
  /// from now on, or will be those that a run writes.
  void forget(std::uint64_t offset, std::size_t bytes);

  bool is_version(std::uint64_t offset) const;
  /// Says that no version of the state has this block, because a later run of the same step has
  /// replaced it.
  void supersede(std::uint64_t offset);
  /// Copies the newest bytes of the range, which is in one block, to `to`. The arena doesn't
  /// change.
  void read(std::uint64_t offset, std::span<std::byte> to) const;

  /// Versions that are on their way to the arena.
  class Landing {
   public:
    Landing() = default;
    Landing(Landing&&) = default;
    Landing& operator=(Landing&&) = default;
    ~Landing();

    /// Waits until they have landed. Throws the plug-in's errors.
    void finish();
    std::size_t bytes() const { return bytes_; }

   private:
    friend DeviceCopies;
    DeviceCopies* copies_ = nullptr;
    std::vector<std::pair<std::uint64_t, Held>> versions_{};
    std::vector<pjrt::Event> events_{};
    std::size_t bytes_ = 0;
  };
  /// Begins to copy all versions to their places in the arena, which nobody else may use until
  /// then.
  Landing land();

 private:
  struct Block {
    TensorType type{};
    Held buffer{};
    bool is_newer = false;  ///< the arena has older bytes
    bool is_version = false;

    std::size_t bytes() const { return static_cast<std::size_t>(type.bytes()); }
  };
  using Blocks = std::map<std::uint64_t, Block>;

  std::pair<std::uint64_t, Block> newer_block_at(std::uint64_t offset) const;
  void erase_overlapping(std::uint64_t offset, std::size_t bytes);

  const std::shared_ptr<const pjrt::Client> client_;
  const std::size_t device_;
  std::byte* const arena_;
  mutable std::mutex mutex_;
  Blocks blocks_;  ///< by offset; they don't overlap
};

/// Throws no_space for an error of a plug-in that lacks memory, and the error itself for others.
/// `what` is a text such as "an input f32[8]", and `bytes` what it needs.
[[noreturn]] void fail_for_memory(const pjrt::PluginError& error, const pjrt::Client& client,
                                  std::size_t device, std::string_view what, std::int64_t bytes);

}  // namespace weft
