#pragma once
/// Tensors of other libraries in memory of the host, by DLPack 1.x, without a copy.
///
///   const weft::HostTensor x = weft::from_dlpack(at::toDLPackVersioned(batch));
///   const weft::Tensor on_chips = weft::to_device(x);
///   at::Tensor y = at::fromDLPackVersioned(weft::to_dlpack(weft::to_host(on_chips)));
///   const weft::DatasetPtr dataset = weft::tensors({x.rows("x"), labels.rows("y")});

#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weft/dataset.hpp>
#include <weft/element.hpp>
#include <weft/tensor.hpp>
#include <weft/type.hpp>

/// Those of <dlpack/dlpack.h>, which a program gets with the other library.
struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace weft {

/// Elements on the host, row-major.
struct HostTensor {
  ConstElementSpan elements;
  Shape shape{};
  /// Keeps the elements; none: they are the caller's.
  std::shared_ptr<const void> owner{};

  /// Throws invalid_argument unless they are as many as the shape's.
  HostTensor(ConstElementSpan borrowed, Shape their_shape,
             std::shared_ptr<const void> kept = nullptr);
  /// Elements that the tensor takes over.
  template <ChipElement T>
  HostTensor(std::vector<T>&& taken, Shape their_shape)
      : HostTensor(std::make_shared<const std::vector<T>>(std::move(taken)), their_shape) {}

  /// Throws invalid_argument if they are of another dtype.
  template <ChipElement T>
  std::span<const T> get() const {
    check_dtype(*dtype_of<T>());
    return {reinterpret_cast<const T*>(elements.data()), static_cast<std::size_t>(elements.size())};
  }
  /// For tensors() of <weft/dataset.hpp>: item i is tensor[i]. Throws invalid_argument for a
  /// scalar.
  Array rows(std::string name) const;

 private:
  template <typename T>
  HostTensor(std::shared_ptr<const std::vector<T>> taken, Shape their_shape)
      : HostTensor(ConstElementSpan(*taken), their_shape, taken) {}
  void check_dtype(DType dtype) const;
};

/// The elements on the chips, as to_device of <weft/tensor.hpp> makes them.
Tensor to_device(const HostTensor& tensor,
                 std::source_location loc = std::source_location::current());
/// All elements of a tensor, read as Tensor::to_bytes() does.
HostTensor to_host(const Tensor& tensor,
                   std::source_location loc = std::source_location::current());

/// Takes the tensor over, also where this throws: its deleter is called, on any thread, when nobody
/// needs the elements any more. They are borrowed if they are row-major and aligned, else copied at
/// once. Nobody may write to them meanwhile. Throws version for another major version than 1;
/// invalid_argument for null, another device than the CPU, a dtype that weft doesn't have, vectors
/// (lanes) and a shape that a Shape can't have; corrupt for a bool that is neither 0 nor 1.
HostTensor from_dlpack(DLManagedTensorVersioned* tensor);
/// As above, of libraries from before DLPack 1.0 (at::toDLPack).
HostTensor from_dlpack(DLManagedTensor* tensor);

/// For from_dlpack of the other library, which calls the deleter; it may do so on any thread. The
/// elements are marked as read-only.
DLManagedTensorVersioned* to_dlpack(HostTensor tensor);

}  // namespace weft
