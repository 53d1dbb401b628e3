#pragma once
/// The bytes and tensors of one message.

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include <weft/tensor/dlpack.hpp>

namespace weft {

namespace detail {
class ActorHost;
}

/// The maximum size of a message in bytes, without the elements of its tensors, and the maximum
/// number of its tensors.
inline constexpr std::size_t kMessageBytesMax = std::size_t{64} << 10;
inline constexpr std::size_t kMessageTensorsMax = 64;

/// Collects the bytes and the tensors of a message while it is being written.
class MessageWriter {
 public:
  void put(const void* bytes, std::size_t size) {
    if (size == 0) return;
    if (size_ + size <= small_.size()) {
      std::memcpy(small_.data() + size_, bytes, size);
      size_ += size;
    } else {
      put_large(bytes, size);
    }
  }
  /// Appends a number of elements. Throws invalid_argument if it is 2^32 or more.
  void count(std::size_t value);
  /// Appends the tensor's dtype and shape, and keeps the tensor.
  void tensor(const HostTensor& tensor);
  /// Appends the bytes and tensors of another message.
  void append(const MessageWriter& other);

  /// Returns the bytes. Throws invalid_argument if the message has more than kMessageBytesMax bytes
  /// or kMessageTensorsMax tensors.
  std::span<const std::byte> bytes() const;
  std::span<const HostTensor> tensors() const { return tensors_; }

 private:
  void put_large(const void* bytes, std::size_t size);

  std::array<std::byte, 128> small_;
  std::vector<std::byte> large_;  ///< all bytes, if they don't fit in `small_`
  std::size_t size_ = 0;
  std::vector<HostTensor> tensors_;
};

/// The elements of a tensor that came with a message.
struct MessagePayload {
  std::span<const std::byte> bytes{};
  std::shared_ptr<const void> owner{};
};

/// Reads a message from its beginning. Every function throws corrupt if the message lacks bytes or
/// tensors that it should have, or has an impossible value.
class MessageReader {
 public:
  /// `process` is the process that received the message. If it is null, references to actors can't
  /// be read.
  explicit MessageReader(std::span<const std::byte> bytes,
                         std::span<const MessagePayload> payloads = {},
                         detail::ActorHost* process = nullptr)
      : left_(bytes), payloads_(payloads), process_(process) {}

  void get(void* bytes, std::size_t size) {
    if (size > left_.size()) fail_short(size);
    if (size == 0) return;
    std::memcpy(bytes, left_.data(), size);
    left_ = left_.subspan(size);
  }
  bool boolean();
  /// Reads a number of elements that are at least `element_bytes` bytes each, and checks that so
  /// many bytes are left. If `element_bytes` is 0, at most 2^16 elements are accepted.
  std::size_t count(std::size_t element_bytes);
  HostTensor tensor();
  detail::ActorHost* process() const { return process_; }
  /// Throws corrupt if bytes or tensors are left.
  void finish() const;

 private:
  [[noreturn]] void fail_short(std::size_t size) const;

  std::span<const std::byte> left_;
  std::span<const MessagePayload> payloads_;
  detail::ActorHost* process_;
};

}  // namespace weft
