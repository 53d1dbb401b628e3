#include "actors/user/tensor_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/message/tensor_bytes.hpp"

namespace weft {
namespace {

/// The range of a tensor in its block. In a message, the ranges of all tensors follow the body.
struct TensorRange {
  std::uint64_t offset;
  std::uint64_t bytes;
};

/// The deleter of a HostTensor's owner. If a tensor that is sent has this deleter, it is already in
/// a block.
struct BlockRelease {
  std::shared_ptr<LaneNode> node;
  BlockId block;
  const std::byte* begin;

  void operator()(const void*) const noexcept { node->blocks().release(block); }
};

/// Returns the block of a tensor; null if it isn't in a block that this process holds.
const BlockRelease* block_of(const std::shared_ptr<LaneNode>& node, const HostTensor& tensor) {
  const auto* release = std::get_deleter<BlockRelease>(tensor.owner);
  return release != nullptr && release->node == node ? release : nullptr;
}

HostTensor copy_into_block(const std::shared_ptr<LaneNode>& node, const HostTensor& tensor) {
  LoanedTensor copy = loan_tensor(node, {tensor.elements.dtype(), tensor.shape});
  const std::size_t bytes = bytes_of(tensor);
  if (bytes > 0) std::memcpy(copy.bytes().data(), tensor.elements.data(), bytes);
  return std::move(copy).finish();
}

}  // namespace

std::vector<std::byte> body_with_places(std::span<const std::byte> body,
                                        std::span<const std::uint64_t> bytes) {
  std::vector<std::byte> whole(body.begin(), body.end());
  for (const std::uint64_t each : bytes) {
    const TensorRange place{.offset = 0, .bytes = each};
    const auto words = std::as_bytes(std::span(&place, 1));
    whole.insert(whole.end(), words.begin(), words.end());
  }
  return whole;
}

void drop_message(LaneNode& node, const InMessage& message) noexcept {
  for (const BlockId block : message.blocks()) node.blocks().release(block);
}

LoanedTensor loan_tensor(const std::shared_ptr<LaneNode>& node, const TensorType& type) {
  const auto bytes = static_cast<std::size_t>(type.bytes());
  const BlockId block = node->blocks().allocate(std::max<std::size_t>(bytes, 1));
  std::byte* begin = node->blocks().writable(block).data();
  std::shared_ptr<const void> owner(begin, BlockRelease{node, block, begin});
  return {std::span(begin, bytes),
          HostTensor(ConstElementSpan(type.dtype, begin, type.shape.num_elements()), type.shape,
                     std::move(owner))};
}

PackedMessage::PackedMessage(const std::shared_ptr<LaneNode>& node, const MessageWriter& message)
    : body_(message.bytes()) {
  if (message.tensors().empty()) return;
  std::vector<TensorRange> places;
  for (const HostTensor& tensor : message.tensors()) {
    const bool is_in_block = block_of(node, tensor) != nullptr;
    if (!is_in_block) copied_.push_back(copy_into_block(node, tensor));
    const HostTensor& placed = is_in_block ? tensor : copied_.back();
    const BlockRelease& in_block = *block_of(node, placed);
    const auto* data = reinterpret_cast<const std::byte*>(placed.elements.data());
    blocks_.push_back(in_block.block);
    places.push_back({static_cast<std::uint64_t>(data - in_block.begin), bytes_of(placed)});
  }
  body_with_places_.assign(body_.begin(), body_.end());
  const auto rest = std::as_bytes(std::span(places));
  body_with_places_.insert(body_with_places_.end(), rest.begin(), rest.end());
  body_ = body_with_places_;
}

UnpackedMessage::UnpackedMessage(const std::shared_ptr<LaneNode>& node, InMessage&& message)
    : message_(std::move(message)), body_bytes_(message_.body().size()) {
  if (message_.blocks().empty()) return;
  payloads_.reserve(message_.blocks().size());
  for (const BlockId block : message_.blocks()) {
    try {
      const std::span<const std::byte> bytes = node->blocks().bytes(block);
      payloads_.push_back({.bytes = bytes,
                           .owner = std::shared_ptr<const void>(
                               bytes.data(), BlockRelease{node, block, bytes.data()})});
    } catch (const Error&) {
      for (const BlockId rest : message_.blocks().subspan(payloads_.size())) {
        node->blocks().release(rest);
      }
      throw;
    }
  }
  const std::size_t place_bytes = payloads_.size() * sizeof(TensorRange);
  if (body_bytes_ < place_bytes) {
    fail(Errc::corrupt, "a message of {} bytes has {} tensors", body_bytes_, payloads_.size());
  }
  body_bytes_ -= place_bytes;
  for (std::size_t i = 0; i < payloads_.size(); ++i) {
    TensorRange place{};
    std::memcpy(&place, message_.body().data() + body_bytes_ + i * sizeof(TensorRange),
                sizeof(place));
    std::span<const std::byte>& bytes = payloads_[i].bytes;
    if (place.offset > bytes.size() || place.bytes > bytes.size() - place.offset) {
      fail(Errc::corrupt, "a message has a tensor of {} bytes at {} of a block of {} bytes",
           place.bytes, place.offset, bytes.size());
    }
    bytes = bytes.subspan(place.offset, place.bytes);
  }
}

}  // namespace weft
