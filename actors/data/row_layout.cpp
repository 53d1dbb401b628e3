#include "actors/data/row_layout.hpp"

#include <cstring>
#include <set>

#include "spmd/mesh/shard_copy.hpp"

namespace weft {

RowLayout::RowLayout(std::vector<FieldLayout> fields) : fields_(std::move(fields)) {
  std::set<std::int64_t> rows;
  for (const FieldLayout& field : fields_) {
    for (const PlacedBox& shard : field.shards) {
      const std::int64_t begin = shard.box.offsets[0];
      for (std::int64_t row = begin; row < begin + shard.box.dims[0]; ++row) rows.insert(row);
    }
  }
  rows_.assign(rows.begin(), rows.end());
}

RowLayout::Part RowLayout::part_of(const FieldLayout& field, std::size_t chip, std::int64_t row,
                                   std::byte* shard) const {
  const Box& box = field.shards[chip].box;
  const std::int64_t place = row - box.offsets[0];
  if (place < 0 || place >= box.dims[0]) return {};
  std::int64_t elements = 1;
  for (int d = 1; d < box.dims.size(); ++d) elements *= box.dims[d];
  const auto bytes = static_cast<std::size_t>(elements * byte_size(field.item.dtype));
  return {.memory = shard + static_cast<std::size_t>(place) * bytes,
          .bytes = bytes,
          .is_whole = elements == field.item.num_elements()};
}

std::byte* RowLayout::whole_item(std::size_t field, std::int64_t row,
                                 const BatchMemory& memory) const {
  for (std::size_t chip = 0; chip < memory[field].size(); ++chip) {
    const Part part = part_of(fields_[field], chip, row, memory[field][chip]);
    if (part.memory != nullptr && part.is_whole) return part.memory;
  }
  return nullptr;
}

void RowLayout::spread(std::size_t field, std::int64_t row, const std::byte* item,
                       const BatchMemory& memory) const {
  const TensorType& type = fields_[field].item;
  const auto dims = static_cast<std::size_t>(type.shape.size());
  for (std::size_t chip = 0; chip < memory[field].size(); ++chip) {
    const Part part = part_of(fields_[field], chip, row, memory[field][chip]);
    if (part.memory == nullptr || part.memory == item) continue;
    if (part.is_whole) {
      std::memcpy(part.memory, item, part.bytes);
      continue;
    }
    const Box& box = fields_[field].shards[chip].box;
    copy_shard(type, item,
               {std::span(box.offsets.begin() + 1, dims), std::span(box.dims.begin() + 1, dims)},
               part.memory);
  }
}

void RowLayout::clear(std::size_t field, std::int64_t row, const BatchMemory& memory) const {
  for (std::size_t chip = 0; chip < memory[field].size(); ++chip) {
    const Part part = part_of(fields_[field], chip, row, memory[field][chip]);
    if (part.memory != nullptr) std::memset(part.memory, 0, part.bytes);
  }
}

}  // namespace weft
