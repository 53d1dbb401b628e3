#pragma once
/// DeviceCopies: the blocks of memory that a chip has on its device.

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

/// A block has the same offset as its copy in the arena, which is the host's memory. Its newest
/// bytes are on the device if a run has written them there, and otherwise in the arena. A block
/// that has a part of a new version of the state is called a *version* until it has landed: until
/// its bytes are in the arena too.
///
/// The chip's thread binds, puts and lands blocks. The loop's thread forgets and reads blocks that
/// no current run uses.
class DeviceCopies {
 public:
  using Held = std::shared_ptr<const pjrt::Buffer>;

  /// `arena` is the chip's arena, and must outlive the object.
  DeviceCopies(std::shared_ptr<const pjrt::Client> client, std::size_t device, std::byte* arena);

  /// Returns the buffer of the block at `offset`. If the device has no such block of this type,
  /// copies it from the arena. Throws no_space, with the numbers of bytes needed and available.
  Held bind(std::uint64_t offset, const TensorType& type);
  /// Stores the result of a run as a block, and removes all blocks that it overlaps.
  void put(std::uint64_t offset, const TensorType& type, pjrt::Buffer buffer, bool is_version);
  /// Frees the blocks on the device that overlap the range, because the arena now has the newest
  /// bytes, or because a run is about to write the range.
  void forget(std::uint64_t offset, std::size_t bytes);

  bool is_version(std::uint64_t offset) const;
  /// Marks the block as not being a version, because a later run of the same step replaces it.
  void supersede(std::uint64_t offset);
  /// Copies the newest bytes of the range to `to`, without changing the arena. The range must be in
  /// one block.
  void read(std::uint64_t offset, std::span<std::byte> to) const;

  /// Copies of versions to the arena that are in progress.
  class Landing {
   public:
    Landing() = default;
    Landing(Landing&&) = default;
    Landing& operator=(Landing&&) = default;
    ~Landing();

    /// Waits until all copies have ended, and the versions have thus landed. Throws the plug-in's
    /// errors.
    void finish();
    std::size_t bytes() const { return bytes_; }

   private:
    friend DeviceCopies;
    DeviceCopies* copies_ = nullptr;
    std::vector<std::pair<std::uint64_t, Held>> versions_{};
    std::vector<pjrt::Event> events_{};
    std::size_t bytes_ = 0;
  };
  /// Begins to copy all versions to the arena. Until they have landed, no other code may use their
  /// places there.
  Landing land();

 private:
  struct Block {
    TensorType type{};
    Held buffer{};
    bool is_newer = false;  ///< the arena has older bytes than the device
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
  Blocks blocks_;  ///< key: the offset; blocks don't overlap
};

/// Throws no_space, with the amounts of memory, if the plug-in's error is a lack of memory, and
/// `error` itself otherwise. `what` describes what needs `bytes` bytes, such as "an input f32[8]".
[[noreturn]] void fail_for_memory(const pjrt::PluginError& error, const pjrt::Client& client,
                                  std::size_t device, std::string_view what, std::int64_t bytes);

}  // namespace weft
