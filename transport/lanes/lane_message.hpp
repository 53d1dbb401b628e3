#pragma once
/// The messages that lanes carry.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/lanes/lane_format.hpp"

namespace weft {

/// A message's subject, in three words that lanes don't interpret.
struct LaneHeading {
  std::uint64_t call = 0;
  std::uint32_t target = 0;
  std::uint32_t kind = 0;
};

/// A message to be sent. The sender must hold its blocks.
struct OutMessage {
  LaneHeading heading{};
  std::span<const std::byte> body{};  ///< at most kBodyBytesMax
  std::span<const BlockId> blocks{};  ///< at most kMessageBlocksMax
};

/// A message that this process has taken. A block that the message lists k times is held k times,
/// and the user of this object has to release it as often.
class InMessage {
 public:
  PeerId from{};
  LaneHeading heading{};

  std::span<const std::byte> body() const {
    return long_body_.empty() ? std::span(short_body_).first(short_bytes_) : std::span(long_body_);
  }
  std::span<const BlockId> blocks() const {
    return long_blocks_.empty() ? std::span(short_blocks_).first(short_count_)
                                : std::span(long_blocks_);
  }

 private:
  friend class LanePort;

  std::array<std::byte, kInlineBodyBytes> short_body_;
  std::array<BlockId, kInlineBlockCount> short_blocks_;
  std::uint8_t short_bytes_ = 0;
  std::uint8_t short_count_ = 0;
  std::vector<std::byte> long_body_;
  std::vector<BlockId> long_blocks_;
};

}  // namespace weft
