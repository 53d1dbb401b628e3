#pragma once
/// LoanedTensor: a tensor in shared memory that messages carry without a copy.

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <weft/tensor/dlpack.hpp>
#include <weft/tensor/element.hpp>
#include <weft/tensor/error.hpp>
#include <weft/tensor/type.hpp>

namespace weft {

/// A tensor in shared memory while its elements are being written. Movable.
///
///   weft::LoanedTensor image = ctx.loan({DType::u8, {480, 640, 3}});
///   camera.read(image.get<std::uint8_t>());
///   viewer.tell<&Viewer::show>(std::move(image).finish());
class LoanedTensor {
 public:
  /// `bytes` are the elements of `tensor`. Nothing else has access to them yet.
  LoanedTensor(std::span<std::byte> bytes, HostTensor tensor)
      : bytes_(bytes), tensor_(std::move(tensor)) {}
  LoanedTensor(LoanedTensor&&) = default;
  LoanedTensor& operator=(LoanedTensor&&) = default;

  /// Returns the elements; their values are unspecified until you write them. Throws
  /// invalid_argument if T isn't the C++ type of the tensor's dtype.
  template <ChipElement T>
  std::span<T> get() {
    return {reinterpret_cast<T*>(bytes_.data()), tensor_.get<T>().size()};
  }
  std::span<std::byte> bytes() { return bytes_; }
  /// Returns the tensor, ready to be sent. After that, don't write to its elements.
  HostTensor finish() && { return std::move(tensor_); }

 private:
  std::span<std::byte> bytes_;
  HostTensor tensor_;
};

namespace detail {
class ActorHost;
/// Allocates the memory of a loaned tensor. Throws no_space.
LoanedTensor loan(const std::shared_ptr<ActorHost>& process, const TensorType& type);
}  // namespace detail

}  // namespace weft
