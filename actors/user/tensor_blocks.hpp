#pragma once
/// Puts the tensors of messages into blocks of shared memory, and gets them out again.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <weft/actor/loan.hpp>
#include <weft/message/bytes.hpp>

#include "transport/lanes/lane_node.hpp"

namespace weft {

/// The body and the blocks of a message. It holds the blocks. `message` must outlive it.
class PackedMessage {
 public:
  /// Copies tensors into blocks unless they are in blocks already. Throws no_space, and
  /// invalid_argument if the message is too long.
  PackedMessage(const std::shared_ptr<LaneNode>& node, const MessageWriter& message);

  std::span<const std::byte> body() const { return body_; }
  std::span<const BlockId> blocks() const { return blocks_; }
  std::size_t copies() const { return copied_.size(); }  ///< number of tensors that were copied

 private:
  std::span<const std::byte> body_;
  std::vector<std::byte> body_with_places_;
  std::vector<BlockId> blocks_;
  std::vector<HostTensor> copied_;
};

/// The bytes and tensors of a received message, whose memory it keeps.
class UnpackedMessage {
 public:
  /// Takes over the blocks that the message holds. Throws corrupt if a tensor isn't inside its
  /// block.
  UnpackedMessage(const std::shared_ptr<LaneNode>& node, InMessage&& message);

  std::span<const std::byte> body() const { return message_.body().first(body_bytes_); }
  std::vector<MessagePayload>& payloads() { return payloads_; }

 private:
  InMessage message_;
  std::size_t body_bytes_;
  std::vector<MessagePayload> payloads_;
};

/// Returns the body of a message in the form that lanes carry. Its i-th tensor is the first
/// `bytes[i]` bytes of the i-th block.
std::vector<std::byte> body_with_places(std::span<const std::byte> body,
                                        std::span<const std::uint64_t> bytes);

/// Releases the blocks of a message that is not read.
void drop_message(LaneNode& node, const InMessage& message) noexcept;

/// Returns memory for a tensor, in a block of this process. Throws no_space.
LoanedTensor loan_tensor(const std::shared_ptr<LaneNode>& node, const TensorType& type);

}  // namespace weft
