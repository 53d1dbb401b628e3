#pragma once
/// Presets: kinds of parallelism as annotations, and nothing else: each says of some tensors how
/// they are sharded, and propagation does the rest. They go together in any order; what is marked
/// by hand decides before tensor_parallel (user priority 1), and that before fsdp and zero1 (2).
///
/// All throw mesh_mismatch for a mesh that isn't the loop's, not_found or, where a PartitionSpec
/// names it, invalid_argument for an axis that it hasn't got, and invalid_argument for a tensor
/// that already lies on the chips in another way.

#include <initializer_list>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include <weft/mesh.hpp>
#include <weft/module.hpp>
#include <weft/optim.hpp>

namespace weft {

/// Every parameter of the module that has as many dims as the spec; throws invalid_argument if none
/// has.
void mark_sharding(const Module& module, const Mesh& mesh, const PartitionSpec& spec,
                   std::source_location loc = std::source_location::current());

/// Data parallelism: the batch's dim 0 over `axis`. Gradients are all-reduced.
void data_parallel(std::span<const Tensor> batch, const Mesh& mesh,
                   const std::string& axis = "data",
                   std::source_location loc = std::source_location::current());
/// As in data_parallel({x, labels}, mesh).
void data_parallel(std::initializer_list<Tensor> batch, const Mesh& mesh,
                   const std::string& axis = "data",
                   std::source_location loc = std::source_location::current());

/// How a linear layer is cut (torch's ColwiseParallel and RowwiseParallel).
enum class TensorParallelStyle : std::uint8_t {
  columns,  ///< weight [out, in] and bias [out] over out: activations come out sharded
  rows,     ///< weight over in: sharded activations go in, partial results come out
};
struct TensorParallelRule {
  std::string layer;  ///< last part of its path: "q_proj"
  TensorParallelStyle style;
};
/// Tensor parallelism (M. Shoeybi et al., Megatron-LM, 2019) of the layers that the rules name:
/// layers of columns followed by one of rows meet once in each direction. A layer's weight and bias
/// are its parameters of those names; an embedding's weight [vocabulary, size] counts as columns of
/// the vocabulary. Throws invalid_argument for a rule that fits no layer.
void tensor_parallel(const Module& module, const Mesh& mesh,
                     const std::vector<TensorParallelRule>& rules,
                     const std::string& axis = "model",
                     std::source_location loc = std::source_location::current());

/// Sequence parallelism (V. Korthikanti et al., 2022): x[batch, length, size] between the layers of
/// tensor parallelism, with the batch over `batch_axis` and the length over `axis`: an all_gather
/// and a reduce_scatter stand for each all_reduce. Returns the x that lies so.
Tensor sequence_parallel(const Tensor& x, const Mesh& mesh, const std::string& batch_axis = "data",
                         const std::string& axis = "model",
                         std::source_location loc = std::source_location::current());

struct FsdpOptions {
  std::string axis = "data";
};
/// Fully sharded data parallelism (ZeRO-3; torch_xla's FSDPv2): shards each parameter over `axis`,
/// in the largest of its dims that isn't sharded yet and that the axis divides; a parameter without
/// such a dim stays as it is. Call it after mark_sharding and before the first sync.
void fsdp(const Module& module, const Mesh& mesh, const FsdpOptions& options = {},
          std::source_location loc = std::source_location::current());

/// ZeRO-1 (S. Rajbhandari et al., 2020): shards the optimizer's state as fsdp would its parameters,
/// which stay replicated: gradients are reduce-scattered, and new parameters all-gathered.
void zero1(const Optimizer& optimizer, const Mesh& mesh, const FsdpOptions& options = {},
           std::source_location loc = std::source_location::current());

}  // namespace weft
