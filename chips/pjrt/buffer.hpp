#pragma once
/// Buffer and Event: memory of a device, and something for which the host can wait.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <weft/tensor/type.hpp>

#include "chips/pjrt/abi/buffer_abi.hpp"

namespace weft::pjrt {

class Client;

ElementType element_type(DType dtype);

/// The end of a transfer or of a run. Null events have ended.
class Event {
 public:
  Event() = default;
  Event(std::shared_ptr<const Client> client, void* handle);
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();

  /// Returns whether it has ended, with or without an error.
  bool is_ready() const;
  /// Waits for the end and becomes null. Throws the plug-in's error.
  void await();

 private:
  std::shared_ptr<const Client> client_{};
  void* handle_ = nullptr;
};

/// Memory of a device, or memory of the host that a device of the CPU uses in place. It keeps its
/// client alive. A run that takes a buffer for its result leaves a buffer that can only be
/// destroyed.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<const Client> client, void* handle);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  void* handle() const { return handle_; }
  /// Returns the address of the memory. Only on CPUs the host may read it.
  std::byte* address() const;
  /// Copies the elements, in row-major order, to `to` and waits for that. Throws invalid_argument
  /// if `to` has another size.
  void download(std::span<std::byte> to) const;
  /// Begins to copy the elements of the buffer, which has this number of dims, in row-major order
  /// to `to`, which has their size and must live until the event. The buffer may be destroyed
  /// before the event.
  Event begin_download(std::span<std::byte> to, int rank) const;

 private:
  std::shared_ptr<const Client> client_{};
  void* handle_ = nullptr;
};

}  // namespace weft::pjrt
