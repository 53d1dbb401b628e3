#pragma once
/// Explicit SPMD (jax.shard_map): a function that is written from the view of one chip, with
/// collectives between chips, in the middle of a program that is sharded by annotations.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <source_location>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <weft/mesh.hpp>
#include <weft/partition_spec.hpp>
#include <weft/tensor.hpp>
#include <weft/tensor_tree.hpp>

namespace weft {

/// One PartitionSpec for each argument, or each part of a result; it holds for all tensors in it. A
/// spec shorter than a tensor's dims leaves the last dims uncut: PartitionSpec{} fits all.
class ShardMapSpecs {
 public:
  ShardMapSpecs(PartitionSpec spec) : specs_{std::move(spec)} {}  // NOLINT
  ShardMapSpecs(std::initializer_list<PartitionSpec> specs) : specs_(specs) {}
  ShardMapSpecs(std::vector<PartitionSpec> specs) : specs_(std::move(specs)) {}  // NOLINT

  const std::vector<PartitionSpec>& list() const { return specs_; }

 private:
  std::vector<PartitionSpec> specs_;
};

struct ShardMapOptions {
  std::vector<std::string> axes = {};  ///< manual as well, although no spec names them
};

/// What shard_map() records, on lists.
struct ShardMapCall {
  const Mesh& mesh;
  const ShardMapSpecs& in_specs;
  const ShardMapSpecs& out_specs;
  const ShardMapOptions& options;
  std::source_location loc;
  std::vector<std::vector<Tensor>> arguments;  ///< the tensors of each
};
/// Gives each part of the result its tensors.
using ShardMapBody = std::function<std::vector<std::vector<Tensor>>(const std::vector<Tensor>&)>;
std::vector<Tensor> shard_map_tensors(const ShardMapBody& body, const ShardMapCall& call);

/// A function that runs `fn` on every chip of the mesh. The axes that the specs name are manual in
/// it: an argument is there the chip's part by its spec, and the result is put together from the
/// chips' results by `out_specs`. All other axes stay automatic. fn runs once, while it is
/// recorded.
///
///   using P = weft::PartitionSpec;
///   // Each chip has 1/n of the experts and of the tokens.
///   const auto run = weft::shard_map(
///       [&](const Tensor& weights, const Tensor& tokens) {
///         const Tensor mine = all_to_all(dispatch(tokens), "expert", 0, 1);
///         return combine(all_to_all(experts(weights, mine), "expert", 1, 0));
///       },
///       mesh, {P{"expert"}, P{"expert"}}, P{"expert"});
///   const Tensor y = run(w, x);
///
/// Arguments and results are a Tensor, or a tree of them (tensor_tree.hpp). Other tensors that fn
/// uses are whole on each chip, as by PartitionSpec{}. Gradients go through all of it; where chips
/// have a copy each, theirs are added up. Random numbers differ on each chip.
///
/// Throws invalid_argument for a dim that the chips don't divide evenly; a result that may differ
/// between chips which its spec doesn't tell apart (psum it, or name the axis); and in fn, for
/// reading a tensor and for assigning a parameter.
template <typename Fn>
auto shard_map(Fn fn, const Mesh& mesh, ShardMapSpecs in_specs, ShardMapSpecs out_specs,
               ShardMapOptions options = {},
               std::source_location loc = std::source_location::current()) {
  return
      [fn = std::move(fn), mesh, in_specs = std::move(in_specs), out_specs = std::move(out_specs),
       options = std::move(options), loc](const auto&... arguments) {
        using Returned =
            decltype(fn(std::declval<const TreeOf<std::decay_t<decltype(arguments)>>&>()...));
        using Tree = TreeOf<std::decay_t<Returned>>;
        Tree result;  // its form
        const ShardMapBody body = [&](const std::vector<Tensor>& parts) {
          auto next = parts.begin();
          const auto part_of = [&]<typename T>(const T& argument) -> TreeOf<T> {
            TreeOf<T> part = argument;
            tensor_tree_detail::visit_tensors(part, [&](Tensor& tensor) { tensor = *next++; });
            return part;
          };
          // Braces: in the order of the arguments.
          result = std::apply(
              fn, std::tuple<TreeOf<std::decay_t<decltype(arguments)>>...>{part_of(arguments)...});
          return tensors_by_part(result);
        };
        const std::vector<Tensor> whole = shard_map_tensors(
            body, {mesh, in_specs, out_specs, options, loc, {tensors_of(arguments)...}});
        return with_tensors<Tree>(result, whole);
      };
}

// In the function of a shard_map. `axes`: one manual axis or several; their chips are a group, in
// the order of the axes, the first major. Outside of one they throw invalid_argument.

/// On each chip of the group: the sum, mean, maximum or minimum of all their x.
Tensor psum(const Tensor& x, const AxisNames& axes,
            std::source_location loc = std::source_location::current());
Tensor pmean(const Tensor& x, const AxisNames& axes,
             std::source_location loc = std::source_location::current());
Tensor pmax(const Tensor& x, const AxisNames& axes,
            std::source_location loc = std::source_location::current());
Tensor pmin(const Tensor& x, const AxisNames& axes,
            std::source_location loc = std::source_location::current());
/// The x of all chips of the group, one behind the other along `dim`.
Tensor all_gather(const Tensor& x, const AxisNames& axes, int dim = 0,
                  std::source_location loc = std::source_location::current());
/// Of the sum of all x, this chip's part along `dim` (jax.lax.psum_scatter).
Tensor reduce_scatter(const Tensor& x, const AxisNames& axes, int dim = 0,
                      std::source_location loc = std::source_location::current());
/// Part i of x along `split_dim` goes to chip i of the group. The parts that a chip gets lie one
/// behind the other along `concat_dim`.
Tensor all_to_all(const Tensor& x, const AxisNames& axes, int split_dim = 0, int concat_dim = 0,
                  std::source_location loc = std::source_location::current());
/// The x of chip `first` is on chip `second`, for each pair; zeros on chips that are no `second`.
Tensor ppermute(const Tensor& x, const AxisNames& axes,
                const std::vector<std::pair<int, int>>& pairs,
                std::source_location loc = std::source_location::current());
/// The x of chip i is on chip i + by, around the ring of the group.
Tensor ring_shift(const Tensor& x, const AxisNames& axes, std::int64_t by = 1,
                  std::source_location loc = std::source_location::current());
/// i32[]: this chip's number in the group.
Tensor axis_index(const AxisNames& axes,
                  std::source_location loc = std::source_location::current());
/// x, of which each chip of the group now has a copy of its own (jax.lax.pvary): a carry that
/// begins alike on all chips and then differs begins so. Everywhere else it is put in as needed.
Tensor vary(const Tensor& x, const AxisNames& axes,
            std::source_location loc = std::source_location::current());

}  // namespace weft
