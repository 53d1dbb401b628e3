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

/// A handle; copies share the value. Used by one thread: the one whose loop made it. Every op
/// throws invalid_argument with both types and the file:line of the call where shapes or dtypes
/// don't fit.
class Tensor {
 public:
  /// No value; every use but assignment throws.
  Tensor() = default;
  explicit Tensor(std::shared_ptr<TensorNode> node) : node_(std::move(node)) {}

  bool defined() const { return node_ != nullptr; }
  const TensorType& type() const;
  const Shape& shape() const { return type().shape; }
  std::int64_t dim(int i) const;
  std::int64_t num_elements() const { return type().num_elements(); }

  /// The value of a tensor of one element. If it hasn't been computed, runs what was recorded,
  /// without ending the step (every worker must call it then).
  double item(std::source_location loc = std::source_location::current()) const;
  /// All elements, row-major; f32 tensors. Runs as item() does, and gathers the shards: every
  /// worker must call it.
  std::vector<float> to_vector(std::source_location loc = std::source_location::current()) const;
  /// The bytes, for any dtype.
  std::vector<std::byte> to_bytes(std::source_location loc = std::source_location::current()) const;

  const std::shared_ptr<TensorNode>& node() const { return node_; }

 private:
  std::shared_ptr<TensorNode> node_;
};

/// A number that changes from step to step (a learning rate): an input, so that a new value is no
/// new program. f32[].
class Scalar : public Tensor {
 public:
  explicit Scalar(double value);
  double value() const { return value_; }
  /// For the uses that are recorded after this, and the next calls of compiled functions.
  void set(double value);

 private:
  double value_;
};

/// A tensor or number as an operand, with the place of the call: for parameters of functions only,
/// as it refers to the tensor. A number is a constant of the program: one that changes from step to
/// step is `scalar(v)`, or every step is compiled anew.
class Operand {
 public:
  Operand(const Tensor& tensor,  // NOLINT(google-explicit-constructor)
          std::source_location loc = std::source_location::current())
      : tensor_(&tensor), loc_(loc) {}
  Operand(double number,  // NOLINT(google-explicit-constructor)
          std::source_location loc = std::source_location::current())
      : number_(number), loc_(loc) {}

  bool is_number() const { return tensor_ == nullptr; }
  /// Of one that isn't a number.
  const Tensor& tensor() const { return *tensor_; }
  double number() const { return number_; }
  const std::source_location& loc() const { return loc_; }

 private:
  const Tensor* tensor_ = nullptr;  // of a number
  double number_ = 0;
  std::source_location loc_;
};

/// torch's ignore_index: a label that cross_entropy leaves out.
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

/// d loss / d wrt[i], of wrt[i]'s type, at the tensors' present values: take gradients before a
/// parameter is assigned. `loss` is a floating scalar that is not yet synced.
std::vector<Tensor> grad(const Tensor& loss, std::span<const Tensor> wrt,
                         std::source_location loc = std::source_location::current());

/// Says how the tensor is to be sharded: data and parameters before their first sync, or any traced
/// value (a constraint). A dim that the parts don't divide is padded on the chips, except of data.
/// Throws invalid_argument for a spec that doesn't fit (see Sharding::from_spec), for data whose
/// dim isn't divided, and for a tensor that already lies on the chips in another way.
void mark_sharding(const Tensor& tensor, const Mesh& mesh, const PartitionSpec& spec,
                   std::source_location loc = std::source_location::current());

/// Ends the step: runs what was recorded, for the parameters that were assigned and all tensors
/// that are still alive. Handles kept from step to step should be the same ones in every step: one
/// more or less is another program to compile.
void sync(std::source_location loc = std::source_location::current());

}  // namespace weft
