#pragma once
/// Puts the tensors of messages into blocks of shared memory, and takes them out.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <weft/actor/loan.hpp>
#include <weft/message/bytes.hpp>

#include "transport/lanes/lane_node.hpp"

namespace weft {

/// The body and blocks of a message whose writer must outlive it. It holds the blocks while it
/// lives.
class PackedMessage {
 public:
  /// Copies tensors that aren't in blocks yet. Throws no_space, or invalid_argument for a message
  /// that is too long.
  PackedMessage(const std::shared_ptr<LaneNode>& node, const MessageWriter& message);

  std::span<const std::byte> body() const { return body_; }
  std::span<const BlockId> blocks() const { return blocks_; }
  std::size_t copies() const { return copied_.size(); }  ///< how many tensors were copied

 private:
  std::span<const std::byte> body_;
  std::vector<std::byte> body_with_places_;
  std::vector<BlockId> blocks_;
  std::vector<HostTensor> copied_;
};

/// The bytes and tensors of a message that was taken. It keeps the message.
class UnpackedMessage {
 public:
  /// Takes over the message's holds of its blocks. Throws corrupt if a tensor lies outside its
  /// block.
  UnpackedMessage(const std::shared_ptr<LaneNode>& node, InMessage&& message);

  std::span<const std::byte> body() const { return message_.body().first(body_bytes_); }
  std::vector<MessagePayload>& payloads() { return payloads_; }

 private:
  InMessage message_;
  std::size_t body_bytes_;
  std::vector<MessagePayload> payloads_;
};

/// Returns the body of a message as lanes carry it, whose i-th tensor has the first `bytes[i]`
/// bytes of the i-th block.
std::vector<std::byte> body_with_places(std::span<const std::byte> body,
                                        std::span<const std::uint64_t> bytes);

/// Releases the blocks of a message that nobody reads.
void drop_message(LaneNode& node, const InMessage& message) noexcept;

/// Makes a tensor in a block of this process. Throws no_space.
LoanedTensor loan_tensor(const std::shared_ptr<LaneNode>& node, const TensorType& type);

}  // namespace weft
