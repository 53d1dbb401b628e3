#include <weft/data/local_data.hpp>

#include <algorithm>

#include "spmd/mesh/shard_copy.hpp"
#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

struct LocalLayout {
  Sharding sharding;
  RowParts parts;
};

/// Returns the layout of a tensor if each worker has only its own rows of it.
LocalLayout local_layout(const Call& call, Runtime& runtime, const LocalOptions& options,
                         int num_dims) {
  const Mesh& mesh = *runtime.mesh();
  const std::string what =
      fmt::format("{} at {}", call.trace().site()->function, file_line(call.loc()));
  std::vector<AxisNames> dims;
  if (options.sharding) {
    dims = options.sharding->dims();
  } else {
    dims.emplace_back(batch_axes(mesh, static_cast<int>(runtime.positions().size())));
  }
  const auto size = static_cast<std::size_t>(num_dims);
  if (dims.size() < size) dims.resize(size);
  const std::vector<std::int64_t> any(size, 1);
  LocalLayout layout;
  layout.sharding = Sharding::from_spec(mesh, PartitionSpec(std::move(dims)), any, what);
  layout.parts = row_parts(mesh, runtime.positions(), layout.sharding, what);
  return layout;
}

}  // namespace

LocalRows::LocalRows(const TensorType& type, std::shared_ptr<const std::vector<std::byte>> rows,
                     RowParts parts)
    : type_(type), rows_(std::move(rows)), parts_(std::move(parts)) {}

void LocalRows::read(std::span<const Target> targets) const {
  if (type_.num_elements() == 0) return;
  const std::int64_t rows = type_.shape[0] / static_cast<std::int64_t>(parts_.held.size());
  for (const Target& target : targets) {
    const Box& box = target.placed.box;
    const std::int64_t part = box.offsets[0] / rows;
    const auto held = std::ranges::find(parts_.held, part);
    WEFT_CHECK(held != parts_.held.end() && box.dims[0] <= rows && box.dims == target.placed.room,
               part, box.dims[0], rows);
    Shape offsets = box.offsets;
    offsets[0] += (held - parts_.held.begin() - part) * rows;
    const auto dims = static_cast<std::size_t>(box.dims.size());
    copy_shard(type_, rows_->data(),
               {std::span(offsets.begin(), dims), std::span(box.dims.begin(), dims)},
               target.memory);
  }
}

std::string LocalRows::name() const {
  return fmt::format("part {} of {}", parts_.set, parts_.num_sets);
}

LocalPart local_part(const LocalOptions& options, std::source_location loc) {
  Call call("local_part", loc);
  Runtime& runtime = call.trace().runtime();
  if (runtime.mesh() == nullptr) return {};
  const int num_dims = options.sharding ? std::max(options.sharding->num_dims(), 1) : 1;
  const RowParts parts = local_layout(call, runtime, options, num_dims).parts;
  return {.index = parts.set, .count = parts.num_sets};
}

Tensor to_device_local(ConstElementSpan rows, const Shape& shape, const LocalOptions& options,
                       std::source_location loc) {
  Call call("to_device_local", loc);
  const TensorType own{rows.dtype(), shape};
  if (shape.size() == 0) call.refuse("{} has no dim 0 for the rows", own.to_string());
  const Tensor local = to_device(rows, shape, loc);
  TensorNode& node = *local.node();
  Runtime& runtime = call.trace().runtime();
  if (runtime.mesh() == nullptr) return local;
  const auto [sharding, parts] = local_layout(call, runtime, options, shape.size());
  const auto held = static_cast<std::int64_t>(parts.held.size());
  if (shape[0] % held != 0) {
    call.refuse(
        "{}: this worker's chips hold {} parts of dim 0 with sharding {} on mesh {}, and its {} "
        "rows aren't divisible by this number; drop the last, smaller batch, or pad it to a "
        "multiple of {}",
        own.to_string(), held, sharding.to_string(*runtime.mesh(), shape.size()),
        runtime.mesh()->to_string(), shape[0], held);
  }
  node.type.shape[0] *= parts.num_sets;
  call.expect_even(node, *runtime.mesh(), sharding);
  node.marked = sharding;
  if (parts.num_sets == 1) return local;
  node.storage = std::make_shared<const LocalRows>(own, std::get<HostData>(node.storage), parts);
  // Assumes that some labels are ignored. All workers must make the same program, but a worker
  // can't know whether other workers have ignored labels.
  node.has_ignored = is_signed_integer(own.dtype);
  return local;
}

}  // namespace weft
