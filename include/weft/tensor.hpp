#pragma once
/// Lazy tensors: code reads as if each op ran at once; ops are recorded, and run at a sync
/// (torch_xla's model).

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <vector>

#include <weft/element.hpp>
#include <weft/mesh.hpp>
#include <weft/partition_spec.hpp>
#include <weft/type.hpp>

namespace weft {

struct TensorNode;

/// A handle; copies share the value. Used only by the thread whose loop made it. Every op throws
/// invalid_argument, with both types and the file:line of the call, if shapes or dtypes don't fit.
class Tensor {
 public:
  /// An empty tensor: every use but assignment throws.
  Tensor() = default;
  explicit Tensor(std::shared_ptr<TensorNode> node) : node_(std::move(node)) {}

  bool defined() const { return node_ != nullptr; }
  const TensorType& type() const;
  const Shape& shape() const { return type().shape; }
  std::int64_t dim(int i) const;
  std::int64_t num_elements() const { return type().num_elements(); }

  /// The value of a tensor of one element. If it hasn't been computed, runs the recorded ops
  /// without ending the step; every worker must then call it.
  double item(std::source_location loc = std::source_location::current()) const;
  /// All elements, row-major. T is the dtype's C++ type (Bf16 for bf16) or one that has all its
  /// values, such as float for bf16. Runs the recorded ops as item() does, and gathers the shards:
  /// every worker must call it.
  template <ChipElement T = float>
  std::vector<T> to_vector(std::source_location loc = std::source_location::current()) const {
    if constexpr (std::same_as<T, bool>) {
      const auto bytes = to_vector_of_bytes(loc);
      return {bytes.begin(), bytes.end()};
    } else {
      std::vector<T> elements(static_cast<std::size_t>(num_elements()));
      copy_to(ElementSpan(elements), loc);
      return elements;
    }
  }
  /// Writes all elements to `destination`, of as many; otherwise as to_vector().
  void copy_to(ElementSpan destination,
               std::source_location loc = std::source_location::current()) const;
  /// All elements as bytes, for any dtype; as to_vector().
  std::vector<std::byte> to_bytes(std::source_location loc = std::source_location::current()) const;

  const std::shared_ptr<TensorNode>& node() const { return node_; }

 private:
  /// Of a pred.
  std::vector<std::uint8_t> to_vector_of_bytes(const std::source_location& loc) const;

  std::shared_ptr<TensorNode> node_;
};

/// A number that changes from step to step (a learning rate), f32[]. It is an input of the program:
/// another value needs no new program.
class Scalar : public Tensor {
 public:
  explicit Scalar(double value);
  double value() const { return value_; }
  /// Sets the value for uses recorded from now on, and for later calls of compiled functions.
  void set(double value);

 private:
  double value_;
};

/// A tensor or number as an operand, with the line of the call. For function parameters only,
/// because it refers to the tensor. A number is a constant of the program: use `scalar(v)` for one
/// that changes from step to step, or every step is compiled again.
class Operand {
 public:
  Operand(const Tensor& tensor,  // NOLINT(google-explicit-constructor)
          std::source_location loc = std::source_location::current())
      : tensor_(&tensor), loc_(loc) {}
  Operand(double number,  // NOLINT(google-explicit-constructor)
          std::source_location loc = std::source_location::current())
      : number_(number), loc_(loc) {}

  bool is_number() const { return tensor_ == nullptr; }
  /// The tensor of an operand that isn't a number.
  const Tensor& tensor() const { return *tensor_; }
  double number() const { return number_; }
  const std::source_location& loc() const { return loc_; }

 private:
  const Tensor* tensor_ = nullptr;  // null: a number
  double number_ = 0;
  std::source_location loc_;
};

/// torch's ignore_index: cross_entropy leaves out this label.
inline constexpr std::int32_t kIgnoreIndex = -100;

// Making tensors. The data are global: every worker passes the same.

/// A vector, array or span of elements, row-major, or ConstElementSpan(dtype, memory, size). A copy
/// is made. Throws invalid_argument if they aren't as many as the shape has.
Tensor to_device(ConstElementSpan elements, const Shape& shape,
                 std::source_location loc = std::source_location::current());
Scalar scalar(double value);
/// A constant of the program.
Tensor full(const Shape& shape, double value, DType dtype = DType::f32,
            std::source_location loc = std::source_location::current());
Tensor iota(const Shape& shape, int dim, DType dtype = DType::i32,
            std::source_location loc = std::source_location::current());

/// d loss / d wrt[i], with wrt[i]'s type, at the tensors' present values: take gradients before a
/// parameter is assigned. `loss` is a floating scalar that is not yet synced.
std::vector<Tensor> grad(const Tensor& loss, std::span<const Tensor> wrt,
                         std::source_location loc = std::source_location::current());

/// jax.vjp, torch.autograd.grad with grad_outputs: for each wrt[j] the sum over i of cotangents[i]
/// * d outputs[i] / d wrt[j]. Outputs are floating tensors of any shape, of one dtype and not yet
/// synced; each cotangent has its output's type, and is a constant to further gradients.
std::vector<Tensor> vjp(std::span<const Tensor> outputs, std::span<const Tensor> cotangents,
                        std::span<const Tensor> wrt,
                        std::source_location loc = std::source_location::current());
/// jax.jvp: for each outputs[i] the sum over j of d outputs[i] / d wrt[j] * tangents[j], by two
/// reverse passes; a tangent has its wrt's type. Throws for ops without a second gradient.
std::vector<Tensor> jvp(std::span<const Tensor> outputs, std::span<const Tensor> wrt,
                        std::span<const Tensor> tangents,
                        std::source_location loc = std::source_location::current());

/// Requests a sharding: for data and parameters before their first sync, or for any traced value (a
/// constraint). A dim that its number of parts doesn't divide is padded on the chips, except in
/// data. Throws invalid_argument for a spec that doesn't fit (see Sharding::from_spec), for data
/// with such a dim, and for a tensor that already lies on the chips in another layout.
void mark_sharding(const Tensor& tensor, const Mesh& mesh, const PartitionSpec& spec,
                   std::source_location loc = std::source_location::current());

/// Ends the step: runs the recorded ops, for the assigned parameters and all tensors that are still
/// alive. Keep the same handles from step to step: one more or less makes another program, which
/// has to be compiled.
void sync(std::source_location loc = std::source_location::current());

}  // namespace weft
