#include "spmd/tensor/call.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/ranges.h>

#include "spmd/base/nearest.hpp"
#include "spmd/program/element.hpp"

namespace weft {
namespace {

/// Returns whether the dtype can represent the number: an integer dtype exactly, a floating dtype
/// after rounding.
bool has_value(DType dtype, double number) {
  if (is_floating(dtype)) return true;
  std::byte element[sizeof(std::int64_t)];
  store_element(dtype, number, element);
  return load_element(dtype, element) == number;
}

}  // namespace

Call::Call(std::string_view function, const std::source_location& loc)
    : trace_(Trace::current(loc)), outermost_(!trace_.site().has_value()) {
  if (outermost_) trace_.enter({function, loc});
}

Call::~Call() noexcept(false) {
  if (outermost_) trace_.leave();
}

void Call::expect_mesh(const Mesh& mesh) const {
  const Mesh* own = trace_.runtime().mesh();
  if (own != nullptr && *own == mesh) return;
  fail(Errc::mesh_mismatch,
       "{}: the mesh given is {}, but this loop runs {}; pass ctx.mesh(); for another mesh, set "
       "backend.spmd or scaling.topology (at {})",
       trace_.site()->function, mesh.to_string(),
       own == nullptr ? "without a mesh" : "on " + own->to_string(), file_line(loc()));
}

void Call::expect_even(const TensorNode& data, const Mesh& mesh, const Sharding& sharding) const {
  const Shape& shape = data.type.shape;
  for (int dim = 0; dim < shape.size(); ++dim) {
    const std::int64_t parts = mesh.count(sharding.dims[static_cast<std::size_t>(dim)]);
    if (shape[dim] % parts == 0) continue;
    refuse(
        "{}: dim {} has size {}, which isn't divisible by the {} parts of {} on mesh {}; drop the "
        "last, smaller batch, pad it to a multiple of {}, or leave the dim unsharded",
        data.label(), dim, shape[dim], parts, sharding.to_string(mesh, shape.size()),
        mesh.to_string(), parts);
  }
}

void Call::refuse_operand(const Operand& x) const {
  if (x.is_number()) refuse("needs a tensor, not the number {}", x.number());
  fail_undefined(loc());
}

ValueId Call::value(const Operand& x, DType dtype, const Shape& shape) {
  if (!x.is_number()) {
    const ValueId own = value(x);
    const bool converts = trace_.builder().type(own).dtype != dtype;
    return spread(converts ? trace_.builder().convert(own, dtype) : own, shape);
  }
  if (!has_value(dtype, x.number())) {
    refuse("the number {} can't be {}; cast the tensor to a floating dtype", x.number(),
           to_string(dtype));
  }
  return trace_.builder().constant(x.number(), {dtype, shape});
}

ValueId Call::spread(ValueId value, const Shape& shape) {
  Builder& builder = trace_.builder();
  if (builder.type(value).shape == shape) return value;
  const Shape from = builder.type(value).shape;
  std::vector<std::int64_t> dims(static_cast<std::size_t>(from.size()));
  std::iota(dims.begin(), dims.end(), shape.size() - from.size());
  return builder.broadcast_in_dim(value, shape, dims);
}

Tensor Call::index(const Tensor& given) {
  const DType dtype = type(given).dtype;
  if (dtype == DType::i32) return given;
  if (dtype == DType::i64) return result(trace_.builder().convert(value(given), DType::i32));
  refuse("the index {} isn't i32 or i64", node(given)->label());
}

Tensor Call::in_dtype(const Operand& x, DType dtype) {
  if (x.is_number()) refuse_operand(x);
  if (!x.tensor().defined() || !is_floating(type(x).dtype)) return x.tensor();
  return type(x).dtype == dtype ? x.tensor() : result(trace_.builder().convert(value(x), dtype));
}

DType Call::common_dtype(std::initializer_list<const Operand*> operands) const {
  const TensorType* first = nullptr;
  bool mixes_halves = false;  // bf16 and f16 both occur; neither has all values of the other
  for (const Operand* x : operands) {
    if (x->is_number()) continue;
    const TensorType& own = type(*x);
    if (first == nullptr) first = &own;
    if (own.dtype == first->dtype) continue;
    if (trace_.modes().autocast && is_floating(own.dtype) && is_floating(first->dtype)) {
      if (is_half(own.dtype) && is_half(first->dtype)) mixes_halves = true;
      if (byte_size(own.dtype) > byte_size(first->dtype)) first = &own;
    } else {
      refuse("{} and {} differ in dtype; cast one of them", first->to_string(),
             type(*x).to_string());
    }
  }
  if (first == nullptr || (mixes_halves && is_half(first->dtype))) return DType::f32;
  return first->dtype;
}

Shape Call::common_shape(std::initializer_list<const Operand*> operands) const {
  Shape common;
  for (const Operand* x : operands) {
    if (x->is_number()) continue;
    const Shape own = type(*x).shape;
    Shape shape = common.size() >= own.size() ? common : own;
    const Shape& shorter = common.size() >= own.size() ? own : common;
    const int offset = shape.size() - shorter.size();
    for (int dim = 0; dim < shorter.size(); ++dim) {
      std::int64_t& size = shape[offset + dim];
      if (size == 1) size = shorter[dim];
      if (shorter[dim] == 1 || shorter[dim] == size) continue;
      refuse(
          "shapes [{}] and [{}] don't broadcast: sizes {} and {} in dim {}; the sizes must be "
          "equal, or one of them must be 1 (reshape, transpose or slice an operand){}",
          fmt::join(common, ","), fmt::join(own, ","), size, shorter[dim], offset + dim,
          whole_operand(operands));
    }
    common = shape;
  }
  return common;
}

int Call::dim_of(int dim, int num_dims) const {
  if (dim < -num_dims || dim >= num_dims) {
    refuse("dim {} is outside of a tensor of {} dims", dim, num_dims);
  }
  return dim < 0 ? dim + num_dims : dim;
}

Shape Call::shape_of(const Dims& sizes) const {
  if (sizes.size() > std::size_t{kDimCountMax}) {
    refuse("the result would have sizes {{{}}}, {} dims; at most {} are supported",
           fmt::join(sizes, ","), sizes.size(), kDimCountMax);
  }
  return Shape(sizes);
}

std::vector<std::int64_t> Call::dims_of(const std::vector<int>& dims, int num_dims) const {
  std::vector<std::int64_t> result;
  // As in torch, the dims that are valid for a tensor with one dim are also valid for a scalar.
  const bool are_of_scalar = num_dims == 0 && dims.size() == 1;
  if (are_of_scalar && (dims[0] == 0 || dims[0] == -1)) return result;
  for (const int dim : dims) result.push_back(dim_of(dim, num_dims));
  for (int dim = 0; dims.empty() && dim < num_dims; ++dim) result.push_back(dim);
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) {
    refuse("dims {{{}}} contain one dim twice", fmt::join(dims, ","));
  }
  return result;
}

int Call::axis_of(const Mesh& mesh, const std::string& name, std::string_view what) const {
  const int axis = mesh.axis_index(name);
  if (axis >= 0) return axis;
  const auto near = nearest_names(name, mesh.axis_names());
  refuse("{} names axis \"{}\"; the mesh is {}{}", what, name, mesh.to_string(),
         near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near.front()));
}

std::string Call::whole_operand(std::initializer_list<const Operand*> operands) const {
  const auto functions = trace_.regions().shard_maps.open();
  if (functions.empty()) return "";
  for (const Operand* x : operands) {
    if (x->is_number()) continue;
    const ManualAtoms atoms = trace_.builder().manual(trace_.value_of(node(*x), loc()));
    if (atoms.anywhere || (functions.back().manual & ~atoms.manual) == 0) continue;
    return fmt::format(
        "; {} is the whole tensor in the function of shard_map() at {}: to get the chip's part, "
        "pass the tensor as an argument with a spec",
        node(*x)->label(), file_line(functions.back().loc));
  }
  return "";
}

}  // namespace weft
