#pragma once
/// Buffer and Event: a device's memory, and the end of a transfer or run that the host can await.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <weft/tensor/type.hpp>

#include "chips/pjrt/abi/buffer_abi.hpp"

namespace weft::pjrt {

class Client;

ElementType element_type(DType dtype);

/// The end of a transfer or of a run. A null event is always ready.
class Event {
 public:
  Event() = default;
  Event(std::shared_ptr<const Client> client, void* handle);
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();

  /// Returns whether the transfer or run has ended, with or without an error.
  bool is_ready() const;
  /// Waits until the transfer or run has ended, and makes the event null. Throws the plug-in's
  /// error.
  void await();

 private:
  std::shared_ptr<const Client> client_{};
  void* handle_ = nullptr;
};

/// Memory of a device, or memory of the host that a device of the CPU uses in place. A buffer keeps
/// its client alive. After a run has taken a buffer for its result, that Buffer can only be
/// destroyed.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<const Client> client, void* handle);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  void* handle() const { return handle_; }
  /// Returns the address of the memory. The host may read there only if the device is a CPU.
  std::byte* address() const;
  /// Copies the elements, in row-major order, to `to` and waits for the end of the copy. Throws
  /// invalid_argument if `to` has another size.
  void download(std::span<std::byte> to) const;
  /// Begins to copy the elements, in row-major order, to `to`. The buffer must have `rank` dims,
  /// and `to` must have the buffer's size and live until the returned event is ready. The buffer
  /// may be destroyed earlier.
  Event begin_download(std::span<std::byte> to, int rank) const;

 private:
  std::shared_ptr<const Client> client_{};
  void* handle_ = nullptr;
};

}  // namespace weft::pjrt
