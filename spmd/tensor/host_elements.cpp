/// Implements the functions that move elements between the host and tensors.

#include <algorithm>
#include <cstring>

#include <weft/tensor/element.hpp>
#include <weft/tensor/tensor.hpp>

#include "spmd/program/element.hpp"
#include "spmd/tensor/trace.hpp"

namespace weft {
namespace {

/// Returns whether the dtype `to` can represent every value of the dtype `from`.
bool has_all_values(DType to, DType from) {
  if (to == from || from == DType::pred) return true;
  const bool is_small = from == DType::i8 || from == DType::u8;
  switch (to) {
    case DType::i32: return is_small;
    case DType::u32: return from == DType::u8;
    case DType::i64: return is_small || from == DType::i32 || from == DType::u32;
    case DType::bf16:
    case DType::f16: return is_small;
    case DType::f32: return is_small || is_half(from);
    case DType::f64: return from != DType::i64;
    default: return false;
  }
}

void expect_preds(ConstElementSpan elements, const std::source_location& loc) {
  const std::span bytes(elements.data(), static_cast<std::size_t>(elements.size()));
  const auto other = std::ranges::find_if(bytes, [](std::byte b) { return b > std::byte{1}; });
  if (other == bytes.end()) return;
  fail(Errc::invalid_argument, "to_device: element {} of the pred is {}: expected 0 or 1 (at {})",
       other - bytes.begin(), static_cast<int>(*other), file_line(loc));
}

template <typename Int>
bool contain_ignored(ConstElementSpan elements) {
  if (elements.dtype() != dtype_of<Int>()) return false;
  const std::span labels(reinterpret_cast<const Int*>(elements.data()),
                         static_cast<std::size_t>(elements.size()));
  return std::ranges::find(labels, static_cast<Int>(kIgnoreIndex)) != labels.end();
}

}  // namespace

Tensor to_device(ConstElementSpan elements, const Shape& shape, std::source_location loc) {
  const TensorType type{elements.dtype(), shape};
  if (elements.size() != type.num_elements()) {
    fail(Errc::invalid_argument, "to_device: {} elements are given for {}, which has {} (at {})",
         elements.size(), type.to_string(), type.num_elements(), file_line(loc));
  }
  if (type.dtype == DType::pred) expect_preds(elements, loc);
  const std::span bytes(elements.data(), static_cast<std::size_t>(type.bytes()));
  Tensor tensor(host_node(type, InputKind::data, "", bytes, loc));
  tensor.node()->has_ignored = contain_ignored<std::int32_t>(elements) ||
                               contain_ignored<std::int64_t>(elements) ||
                               contain_ignored<std::int8_t>(elements);
  return tensor;
}

void Tensor::copy_to(ElementSpan destination, std::source_location loc) const {
  const NodePtr& node = node_of(*this, loc);
  const DType from = node->type.dtype;
  const DType to = destination.dtype();
  if (!has_all_values(to, from)) {
    fail(Errc::invalid_argument,
         "{} is read as {}, which can't represent all of its values: read it as {}, or cast it "
         "first (at {})",
         node->label(), to_string(to), to_string(from), file_line(loc));
  }
  if (destination.size() != num_elements()) {
    fail(Errc::invalid_argument, "{} has {} elements and is read into {} (at {})", node->label(),
         num_elements(), destination.size(), file_line(loc));
  }
  const std::vector<std::byte> bytes = Trace::read(node, loc);
  if (to == from) {
    if (!bytes.empty()) std::memcpy(destination.data(), bytes.data(), bytes.size());
    return;
  }
  for (std::int64_t i = 0; i < destination.size(); ++i) {
    store_element(to, load_element(from, bytes.data() + i * byte_size(from)),
                  destination.data() + i * byte_size(to));
  }
}

std::vector<std::byte> Tensor::to_bytes(std::source_location loc) const {
  return Trace::read(node_of(*this, loc), loc);
}

}  // namespace weft
