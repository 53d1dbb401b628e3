#pragma once
/// HostFrame: what the hosts of an actor system send each other over a lane link.
///
///   frame = FrameHead bytes:u64{block_count} body:byte{body_bytes} (byte{bytes[i]}){block_count}
///
/// Numbers are in native byte order, because all hosts run the same build.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/lanes/lane_message.hpp"

namespace weft {

enum class FrameKind : std::uint32_t {
  message = 1,  ///< a message of a lane, with the tensors of its blocks
  order = 2,    ///< `heading.kind` is a HostOp; the body is its argument
  /// Process `to` has taken `heading.target` messages with `heading.call` bytes of tensors from its
  /// port. The receiver of the frame may send as many more to that port.
  credit = 3,
  cancel = 4,  ///< process `from` doesn't wait for its call `heading.call` any more
  beat = 5,    ///< the sender lives; sent once a second
};

struct FrameHead {
  std::uint32_t magic = kMagic;
  FrameKind kind{};
  std::uint32_t body_bytes = 0;
  std::uint32_t block_count = 0;
  PeerId from{};
  PeerId to{};
  LaneHeading heading{};
  std::uint32_t port = 0;
  std::uint32_t reserved = 0;
  /// The number of host 0's orders that the sender has obeyed. The receiver takes the frame only
  /// when it has obeyed as many, so that it knows what the sender knew.
  std::uint64_t obeyed = 0;

  static constexpr std::uint32_t kMagic = 0x316e'6c77;  // "wln1"
};
static_assert(sizeof(FrameHead) == 64);

/// The largest size that a frame may state for the block of a tensor, in bytes.
inline constexpr std::uint64_t kFrameBlockBytesMax = std::uint64_t{1} << 40U;

/// A frame that is to be sent. Its memory must not change until it has been sent.
struct HostFrame {
  FrameHead head{};
  std::vector<std::byte> bytes{};                     ///< sizes of the blocks, then the body
  std::vector<std::span<const std::byte>> tensors{};  ///< the blocks' bytes
  std::shared_ptr<const void> keeps{};                ///< the owner of the tensors' memory

  std::uint64_t tensor_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& each : tensors) sum += each.size();
    return sum;
  }
};

}  // namespace weft
