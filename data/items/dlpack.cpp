#include <weft/tensor/dlpack.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <weft/tensor/error.hpp>

#include "data/items/dlpack_abi.hpp"
#include "spmd/program/strides.hpp"
#include "spmd/tensor/node.hpp"

namespace weft {
namespace {

using dlpack::DataType;
using dlpack::TypeCode;

struct KnownType {
  DataType theirs;
  DType ours;
};
constexpr DataType data_type(TypeCode code, std::uint8_t bits) {
  return {static_cast<std::uint8_t>(code), bits, 1};
}
constexpr std::array<KnownType, kDTypeCount> kTypes{
    {{data_type(TypeCode::boolean, 8), DType::pred},
     {data_type(TypeCode::signed_integer, 8), DType::i8},
     {data_type(TypeCode::unsigned_integer, 8), DType::u8},
     {data_type(TypeCode::floating, 16), DType::f16},
     {data_type(TypeCode::signed_integer, 32), DType::i32},
     {data_type(TypeCode::unsigned_integer, 32), DType::u32},
     {data_type(TypeCode::signed_integer, 64), DType::i64},
     {data_type(TypeCode::bfloat, 16), DType::bf16},
     {data_type(TypeCode::floating, 32), DType::f32},
     {data_type(TypeCode::floating, 64), DType::f64}}};

/// The maximum of offsets and strides; those of real tensors are smaller.
constexpr std::int64_t kReachMax = std::int64_t{1} << 48;

DType dtype_of_theirs(const DataType& type) {
  if (type.lanes != 1) {
    fail(Errc::invalid_argument,
         "from_dlpack: lanes = {}: expected 1; weft doesn't support vector types", type.lanes);
  }
  const auto* const found = std::ranges::find(kTypes, type, &KnownType::theirs);
  if (found != kTypes.end()) return found->ours;
  constexpr std::array<std::string_view, 7> kCodes{"int",    "uint",    "float", "opaque handle",
                                                   "bfloat", "complex", "bool"};
  fail(Errc::invalid_argument,
       "from_dlpack: elements are {} of {} bits: expected bool, int8, uint8, int32, uint32, int64, "
       "float16, bfloat16, float32 or float64; convert the tensor first",
       type.code < kCodes.size() ? kCodes[type.code] : fmt::format("type {}", type.code),
       type.bits);
}

Shape shape_of(const dlpack::Tensor& tensor) {
  if (tensor.ndim < 0 || tensor.ndim > kDimCountMax || (tensor.ndim > 0 && !tensor.shape)) {
    fail(Errc::invalid_argument,
         "from_dlpack: ndim = {}, shape is {}: expected 0 to {}, with a shape", tensor.ndim,
         tensor.shape ? "given" : "null", kDimCountMax);
  }
  try {
    return Shape(
        std::span<const std::int64_t>(tensor.shape, static_cast<std::size_t>(tensor.ndim)));
  } catch (const Error& error) {
    fail(error.code(), "from_dlpack: {}", error.what());
  }
}

/// Returns the tensor's strides. Replaces strides of dims of size 1, which have no effect, by those
/// of dense_strides().
Strides strides_of(const dlpack::Tensor& tensor, const Shape& shape) {
  Strides strides = dense_strides(shape);
  if (!tensor.strides) return strides;
  std::int64_t reach = 0;
  for (int dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] == 1) continue;
    const std::int64_t stride = tensor.strides[dim];
    if (stride > kReachMax || stride < -kReachMax ||
        std::abs(stride) > (kReachMax - reach) / (shape[dim] - 1)) {
      fail(Errc::invalid_argument, "from_dlpack: strides[{}] = {} with shape ({}) is too large",
           dim, stride, shape.to_string());
    }
    reach += std::abs(stride) * (shape[dim] - 1);
    strides[static_cast<std::size_t>(dim)] = stride;
  }
  return strides;
}

/// Copies elements with these strides to `out` in row-major order.
void gather(const std::byte* from, const Shape& shape, const Strides& strides,
            std::size_t element_bytes, std::byte* out) {
  std::array<std::int64_t, kDimCountMax> index{};
  const auto bytes = static_cast<std::int64_t>(element_bytes);
  std::int64_t offset = 0;
  for (std::int64_t count = shape.num_elements(); count > 0; --count) {
    std::memcpy(out, from + offset * bytes, element_bytes);
    out += element_bytes;
    for (int dim = shape.size() - 1; dim >= 0; --dim) {
      const auto d = static_cast<std::size_t>(dim);
      offset += strides[d];
      if (++index[d] < shape[dim]) break;
      offset -= strides[d] * shape[dim];
      index[d] = 0;
    }
  }
}

void check_bools(const HostTensor& tensor) {
  if (tensor.elements.dtype() != DType::pred) return;
  const std::span bytes(tensor.elements.data(), static_cast<std::size_t>(tensor.elements.size()));
  const auto other = std::ranges::find_if(bytes, [](std::byte b) { return b > std::byte{1}; });
  if (other == bytes.end()) return;
  fail(Errc::corrupt, "from_dlpack: element {} is a bool of value {}: expected 0 or 1",
       other - bytes.begin(), std::to_integer<int>(*other));
}

HostTensor take(const dlpack::Tensor& tensor, std::shared_ptr<const void> owner) {
  if (tensor.device.type != dlpack::DeviceType::cpu) {
    fail(Errc::invalid_argument,
         "from_dlpack: device_type = {}: expected 1, the CPU; copy the tensor to the host first",
         static_cast<int>(tensor.device.type));
  }
  const DType dtype = dtype_of_theirs(tensor.dtype);
  const Shape shape = shape_of(tensor);
  const std::int64_t count = shape.num_elements();
  if (count == 0) return {ConstElementSpan(dtype, nullptr, 0), shape};
  if (!tensor.data || tensor.byte_offset > static_cast<std::uint64_t>(kReachMax)) {
    fail(Errc::invalid_argument, "from_dlpack: data = {}, byte_offset = {}: expected valid memory",
         tensor.data, tensor.byte_offset);
  }
  const Strides strides = strides_of(tensor, shape);
  const std::byte* const begin = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  const auto element_bytes = static_cast<std::size_t>(byte_size(dtype));
  if (strides == dense_strides(shape) &&
      reinterpret_cast<std::uintptr_t>(begin) % element_bytes == 0) {
    return {ConstElementSpan(dtype, begin, count), shape, std::move(owner)};
  }
  const std::shared_ptr<std::byte[]> copy(
      new std::byte[static_cast<std::size_t>(count) * element_bytes]);
  gather(begin, shape, strides, element_bytes, copy.get());
  return {ConstElementSpan(dtype, copy.get(), count), shape, copy};
}

/// Returns an owner of the tensor. The last owner calls the tensor's deleter.
template <typename Managed>
std::shared_ptr<Managed> own(Managed* tensor) {
  if (!tensor) fail(Errc::invalid_argument, "from_dlpack: the tensor is null");
  return {tensor, [](Managed* owned) {
            if (owned->deleter) owned->deleter(owned);
          }};
}

/// The object whose tensor to_dlpack() gives to its caller.
struct Lent {
  dlpack::ManagedTensorVersioned managed{};
  HostTensor tensor;
  std::array<std::int64_t, kDimCountMax> shape{};
  Strides strides{};
};

}  // namespace

HostTensor::HostTensor(ConstElementSpan borrowed, Shape their_shape,
                       std::shared_ptr<const void> kept)
    : elements(borrowed), shape(their_shape), owner(std::move(kept)) {
  if (elements.size() == shape.num_elements()) return;
  fail(Errc::invalid_argument, "HostTensor: {} elements are given for shape ({}), which has {}",
       elements.size(), shape.to_string(), shape.num_elements());
}

Array HostTensor::rows(std::string name) const {
  if (shape.size() == 0) {
    fail(Errc::invalid_argument, "HostTensor: '{}' is a scalar, which has no rows", name);
  }
  return {std::move(name), elements, Shape(std::span<const std::int64_t>(shape).subspan(1)), owner};
}

void HostTensor::check_dtype(DType dtype) const {
  if (elements.dtype() == dtype) return;
  fail(Errc::invalid_argument, "HostTensor: the elements are {}, but were requested as {}",
       to_string(elements.dtype()), to_string(dtype));
}

Tensor to_device(const HostTensor& tensor, std::source_location loc) {
  return to_device(tensor.elements, tensor.shape, loc);
}

HostTensor to_host(const Tensor& tensor, std::source_location loc) {
  const TensorNode& node = *node_of(tensor, loc);
  const auto* on_host = std::get_if<HostData>(&node.storage);
  // A parameter's bytes in host memory aren't used, because the value on the chips may be newer.
  HostData bytes = on_host != nullptr && !node.is_state()
                       ? *on_host
                       : std::make_shared<const std::vector<std::byte>>(tensor.to_bytes(loc));
  const ConstElementSpan elements(tensor.type().dtype, bytes->data(), tensor.num_elements());
  return {elements, tensor.shape(), std::move(bytes)};
}

HostTensor from_dlpack(DLManagedTensorVersioned* tensor) {
  const auto owner = own(reinterpret_cast<dlpack::ManagedTensorVersioned*>(tensor));
  if (owner->version.major != dlpack::kMajorVersion) {
    fail(Errc::version, "from_dlpack: version {}.{}: expected {}.x", owner->version.major,
         owner->version.minor, dlpack::kMajorVersion);
  }
  HostTensor taken = take(owner->tensor, owner);
  check_bools(taken);
  return taken;
}

HostTensor from_dlpack(DLManagedTensor* tensor) {
  const auto owner = own(reinterpret_cast<dlpack::ManagedTensor*>(tensor));
  HostTensor taken = take(owner->tensor, owner);
  check_bools(taken);
  return taken;
}

DLManagedTensorVersioned* to_dlpack(HostTensor tensor) {
  auto lent = std::make_unique<Lent>(Lent{.tensor = std::move(tensor)});
  const Shape& shape = lent->tensor.shape;
  std::ranges::copy(std::span<const std::int64_t>(shape), lent->shape.begin());
  lent->strides = dense_strides(shape);
  lent->managed = {
      .manager_ctx = lent.get(),
      .deleter =
          [](dlpack::ManagedTensorVersioned* self) {
            delete static_cast<Lent*>(self->manager_ctx);
          },
      .flags = dlpack::kReadOnly,
      .tensor = {
          // The flag kReadOnly tells the receiver not to write to `data`.
          .data = const_cast<std::byte*>(lent->tensor.elements.data()),
          .device = {dlpack::DeviceType::cpu, 0},
          .ndim = shape.size(),
          .dtype =
              std::ranges::find(kTypes, lent->tensor.elements.dtype(), &KnownType::ours)->theirs,
          .shape = lent->shape.data(),
          .strides = lent->strides.data(),
      }};
  return reinterpret_cast<DLManagedTensorVersioned*>(&lent.release()->managed);
}

}  // namespace weft
