#include "actors/data/batch_shapes.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include <fmt/ranges.h>
#include <weft/tensor/error.hpp>

#include "spmd/tensor/node.hpp"

namespace weft {
namespace {

/// Returns the spec of a field's tensor. A spec from the options may omit the last dims.
PartitionSpec spec_of(const std::string& field, const DeviceLoaderOptions& options,
                      const Mesh& mesh) {
  const auto own = options.field_sharding.find(field);
  if (own != options.field_sharding.end()) return own->second;
  if (options.input_sharding) return *options.input_sharding;
  const bool has_data = std::ranges::find(mesh.axis_names(), "data") != mesh.axis_names().end();
  return has_data ? PartitionSpec{{"data"}} : PartitionSpec{};
}

/// Returns the sharding of a field's tensor. A smaller last batch whose rows can't be divided
/// evenly among the parts of dim 0 is given completely to every chip.
Sharding sharding_of(const std::string& field, const TensorType& type, PartitionSpec spec,
                     bool is_last, const Mesh& mesh, const std::source_location& where) {
  const auto num_dims = static_cast<std::size_t>(type.shape.size());
  if (spec.dims().size() < num_dims) {
    std::vector<AxisNames> dims = spec.dims();
    dims.resize(num_dims);
    spec = PartitionSpec(std::move(dims));
  }
  const std::string what =
      fmt::format("DeviceLoader: input_sharding of '{}' {}, with the batch as dim 0 (at {})", field,
                  type.to_string(), file_line(where));
  Sharding sharding = Sharding::from_spec(mesh, spec, type.shape, what);
  if (is_last && type.shape[0] % mesh.count(sharding.dims[0]) != 0) {
    std::vector<AxisNames> dims = spec.dims();
    dims[0] = {};
    sharding = Sharding::from_spec(mesh, PartitionSpec(std::move(dims)), type.shape, what);
  }
  for (std::size_t d = 0; d < num_dims; ++d) {
    const std::int64_t parts = mesh.count(sharding.dims[d]);
    const std::int64_t size = type.shape[static_cast<int>(d)];
    if (size % parts == 0) continue;
    fail(Errc::invalid_argument,
         "{}: the {} parts of {} on mesh {} don't divide dim {}, of size {}: take {}, or don't "
         "shard that dim",
         what, parts, spec.to_string(), mesh.to_string(), d, size,
         d == 0 ? fmt::format("a batch_size that is a multiple of {}", parts)
                : fmt::format("items whose size in that dim is a multiple of {}", parts));
  }
  return sharding;
}

void check_buckets(const Dataset& dataset, const DeviceLoaderOptions& options,
                   const std::source_location& where) {
  const auto& lengths = options.bucket_lengths;
  if (lengths.empty() != options.bucket_fields.empty()) {
    fail(Errc::invalid_argument,
         "DeviceLoader: bucket_lengths has {} lengths and bucket_fields {} names: expected both or "
         "neither (at {})",
         lengths.size(), options.bucket_fields.size(), file_line(where));
  }
  if (!std::ranges::is_sorted(lengths, std::less_equal<>()) ||
      (!lengths.empty() && lengths.front() < 1)) {
    fail(Errc::invalid_argument,
         "DeviceLoader: bucket_lengths = {}: expected lengths of 1 or more, each greater than the "
         "one before (at {})",
         lengths, file_line(where));
  }
  for (const std::string& name : options.bucket_fields) {
    const auto& fields = dataset.fields();
    const auto field = std::ranges::find(fields, name, &Field::name);
    if (field == fields.end()) {
      fail(Errc::invalid_argument, "DeviceLoader: bucket_fields: {} has no field '{}' (at {})",
           dataset.name(), name, file_line(where));
    }
    if (field->type.shape.size() > 0 && field->type.shape[0] >= lengths.back()) continue;
    fail(Errc::invalid_argument,
         "DeviceLoader: bucket_fields: '{}' of {} is {}: expected a first dim of at least {}, the "
         "last of bucket_lengths (at {})",
         name, dataset.name(), field->type.to_string(), lengths.back(), file_line(where));
  }
}

/// Returns the layout of a batch of `rows` rows. `bucket` is the length of the bucketed fields; 0
/// means that they keep the dataset's length.
BatchLayout layout_of(const Dataset& dataset, const DeviceLoaderOptions& options, std::int64_t rows,
                      std::int64_t bucket, const Mesh& mesh, const std::source_location& where) {
  std::vector<Field> fields = dataset.fields();
  if (options.pad_last) fields.push_back({"weight", {DType::f32, {}}});
  const bool is_last = rows < options.sampler->batch_size();
  BatchLayout layout;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    std::vector<std::int64_t> dims{rows};
    dims.insert(dims.end(), fields[f].type.shape.begin(), fields[f].type.shape.end());
    if (dims.size() > static_cast<std::size_t>(kDimCountMax)) {
      fail(Errc::invalid_argument,
           "DeviceLoader: field '{}' of {} is {}: with the batch dim it has more than {} dims "
           "(at {})",
           fields[f].name, dataset.name(), fields[f].type.to_string(), kDimCountMax,
           file_line(where));
    }
    const auto& cut = options.bucket_fields;
    if (bucket > 0 && std::ranges::find(cut, fields[f].name) != cut.end()) dims[1] = bucket;
    const TensorType type{fields[f].type.dtype, Shape(std::span<const std::int64_t>(dims))};
    PartitionSpec spec = spec_of(fields[f].name, options, mesh);
    const bool is_weight = f == dataset.fields().size();
    if (is_weight && spec.num_dims() > 1) spec = PartitionSpec({spec.dims().front()});
    layout.types.push_back(type);
    layout.shardings.push_back(sharding_of(fields[f].name, type, spec, is_last, mesh, where));
  }
  return layout;
}

}  // namespace

BatchShapes::BatchShapes(const Dataset& dataset, const DeviceLoaderOptions& options,
                         std::int64_t last_rows, const Mesh& mesh,
                         const std::source_location& where)
    : sampler_(options.sampler),
      buckets_(options.bucket_lengths),
      has_small_last_(last_rows > 0),
      dataset_(dataset.name()) {
  for (const auto& [name, spec] : options.field_sharding) {
    const auto& fields = dataset.fields();
    if (std::ranges::find(fields, name, &Field::name) != fields.end()) continue;
    fail(Errc::invalid_argument, "DeviceLoader: field_sharding: {} has no field '{}' (at {})",
         dataset.name(), name, file_line(where));
  }
  check_buckets(dataset, options, where);
  std::vector<std::int64_t> buckets = buckets_;
  if (buckets.empty()) buckets.push_back(0);
  std::vector<std::int64_t> rows{sampler_->batch_size()};
  if (has_small_last_) rows.push_back(last_rows);
  for (const std::int64_t count : rows) {
    for (const std::int64_t bucket : buckets) {
      layouts_.push_back(layout_of(dataset, options, count, bucket, mesh, where));
    }
  }
}

BatchShapes::Choice BatchShapes::choose(std::uint64_t batch) {
  const std::uint64_t batches = sampler_->steps_per_epoch();
  const bool is_small = has_small_last_ && batch % batches + 1 == batches;
  if (buckets_.empty()) return {.layout = is_small ? std::size_t{1} : 0};
  if (order_ == nullptr || !order_->has(batch)) order_ = sampler_->order_at(batch);
  const std::int64_t rows = layouts_[is_small ? buckets_.size() : 0].rows();
  std::int64_t longest = 0;
  std::int64_t total = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t length = order_->length(batch, row);
    longest = std::max(longest, length);
    total += length;
  }
  const auto bucket = std::ranges::lower_bound(buckets_, longest);
  if (bucket == buckets_.end()) {
    fail(Errc::invalid_argument,
         "DeviceLoader of {}: batch {} has an item of length {}: expected at most {}, the last of "
         "bucket_lengths; add a bucket, or leave such items out by filter()",
         dataset_, batch, longest, buckets_.back());
  }
  const auto number = static_cast<std::size_t>(bucket - buckets_.begin());
  return {.layout = number + (is_small ? buckets_.size() : 0),
          .padding = 1 - static_cast<double>(total) / static_cast<double>(rows * *bucket)};
}

}  // namespace weft
