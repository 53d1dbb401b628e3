#pragma once
/// Lazy tensors: code reads as if each op ran at once; ops are recorded, and run at a sync
/// (torch_xla's model).

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <vector>

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
  /// All elements of an f32 tensor, row-major. Runs the recorded ops as item() does, and gathers
  /// the shards: every worker must call it.
  std::vector<float> to_vector(std::source_location loc = std::source_location::current()) const;
  /// All elements as bytes, for any dtype; as to_vector().
  std::vector<std::byte> to_bytes(std::source_location loc = std::source_location::current()) const;

  const std::shared_ptr<TensorNode>& node() const { return node_; }

 private:
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
Tensor to_device(std::span<const float> elements, const Shape& shape,
                 std::source_location loc = std::source_location::current());
Tensor to_device(std::span<const std::int32_t> elements, const Shape& shape,
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
