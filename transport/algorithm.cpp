#include <weft/transport/algorithm.hpp>

#include <algorithm>
#include <array>
#include <cstring>

#include <weft/transport/control_format.hpp>
#include <weft/transport/reduce.hpp>

namespace weft {
namespace {

void copy_bytes(std::byte* destination, const std::byte* source, std::size_t bytes) {
  if (destination != source) std::memcpy(destination, source, bytes);
}

std::size_t element_bytes(const CollectiveCall& call) {
  return static_cast<std::size_t>(byte_size(call.dtype));
}

void reduce_mailboxes(const CollectiveCall& call, const GroupMemory& group) {
  const auto self = group.arenas.subspan(static_cast<std::size_t>(group.index), 1);
  reduce(call.reduce, call.dtype, {group.mailboxes, 0}, {self, call.destination}, call.count);
}

/// Slices begin on cache lines, so that no two chips write to one.
void push_slice(const CollectiveCall& call, const GroupMemory& group) {
  const auto n = static_cast<std::int64_t>(group.arenas.size());
  const std::int64_t unit = 64 / byte_size(call.dtype);
  const std::int64_t slice = ((call.count + n - 1) / n + unit - 1) / unit * unit;
  const std::int64_t begin = std::min(call.count, slice * group.index);
  const std::int64_t end = std::min(call.count, begin + slice);
  const std::size_t offset = static_cast<std::size_t>(begin) * element_bytes(call);
  reduce(call.reduce, call.dtype, {group.arenas, call.source + offset},
         {group.arenas, call.destination + offset}, end - begin);
}

void gather(const CollectiveCall& call, const GroupMemory& group) {
  const std::size_t n = group.arenas.size();
  const std::size_t row = static_cast<std::size_t>(call.count) * element_bytes(call);
  std::byte* destination = group.arenas[static_cast<std::size_t>(group.index)] + call.destination;
  for (std::size_t q = 0; q < n; ++q) {
    const std::byte* source = group.arenas[q] + call.source;
    for (std::size_t o = 0; o < static_cast<std::size_t>(call.outer); ++o) {
      copy_bytes(destination + (o * n + q) * row, source + o * row, row);
    }
  }
}

void reduce_scatter(const CollectiveCall& call, const GroupMemory& group) {
  const std::size_t n = group.arenas.size();
  const auto index = static_cast<std::size_t>(group.index);
  const std::size_t row = static_cast<std::size_t>(call.count) * element_bytes(call);
  const auto self = group.arenas.subspan(index, 1);
  for (std::size_t o = 0; o < static_cast<std::size_t>(call.outer); ++o) {
    reduce(call.reduce, call.dtype, {group.arenas, call.source + (o * n + index) * row},
           {self, call.destination + o * row}, call.count);
  }
}

/// A block of `shape` elements within two larger row-major arrays.
struct BlockCopy {
  std::array<std::size_t, kDimCountMax> shape{};
  std::array<std::size_t, kDimCountMax> source_stride{};
  std::array<std::size_t, kDimCountMax> destination_stride{};
  /// Dims from here on are contiguous in both arrays.
  int contiguous_from = 0;
};

void copy_block(const BlockCopy& block, int dim, std::byte* destination, const std::byte* source) {
  const auto d = static_cast<std::size_t>(dim);
  if (dim == block.contiguous_from) {
    copy_bytes(destination, source, block.shape[d] * block.source_stride[d]);
    return;
  }
  for (std::size_t i = 0; i < block.shape[d]; ++i) {
    copy_block(block, dim + 1, destination + i * block.destination_stride[d],
               source + i * block.source_stride[d]);
  }
}

/// Chip r gets part r of every operand; the part of chip q lies at place q along concat_dim.
void all_to_all(const CollectiveCall& call, const GroupMemory& group) {
  const std::size_t n = group.arenas.size();
  const auto index = static_cast<std::size_t>(group.index);
  const auto split = static_cast<std::size_t>(call.split_dim);
  const auto concat = static_cast<std::size_t>(call.concat_dim);
  BlockCopy block;
  block.contiguous_from = std::max(call.split_dim, call.concat_dim);
  std::size_t source_stride = element_bytes(call);
  std::size_t destination_stride = source_stride;
  for (int dim = call.shape.size() - 1; dim >= 0; --dim) {
    const auto d = static_cast<std::size_t>(dim);
    const auto size = static_cast<std::size_t>(call.shape[dim]);
    block.shape[d] = d == split ? size / n : size;
    block.source_stride[d] = source_stride;
    block.destination_stride[d] = destination_stride;
    source_stride *= size;
    destination_stride *= d == concat ? block.shape[d] * n : block.shape[d];
  }
  const std::size_t source_offset = index * block.shape[split] * block.source_stride[split];
  const std::size_t place = block.shape[concat] * block.destination_stride[concat];
  std::byte* destination = group.arenas[index] + call.destination;
  for (std::size_t q = 0; q < n; ++q) {
    copy_block(block, 0, destination + q * place, group.arenas[q] + call.source + source_offset);
  }
}

void fetch(const CollectiveCall& call, const GroupMemory& group, int from) {
  copy_bytes(group.arenas[static_cast<std::size_t>(group.index)] + call.destination,
             group.arenas[static_cast<std::size_t>(from)] + call.source,
             static_cast<std::size_t>(call.count) * element_bytes(call));
}

void pull(const CollectiveCall& call, const GroupMemory& group) {
  switch (call.kind) {
    case CollectiveKind::all_gather: return gather(call, group);
    case CollectiveKind::reduce_scatter: return reduce_scatter(call, group);
    case CollectiveKind::all_to_all: return all_to_all(call, group);
    case CollectiveKind::permute:
      return fetch(call, group, call.from[static_cast<std::size_t>(group.index)]);
    case CollectiveKind::broadcast: return fetch(call, group, call.from[0]);
    case CollectiveKind::barrier:
    case CollectiveKind::all_reduce: break;
  }
  WEFT_CHECK(false, to_string(call.kind));
}

}  // namespace

Algorithm choose_algorithm(const CollectiveCall& call, int group_size) {
  const std::uint64_t bytes = bytes_of(call, group_size).source;
  if (bytes == 0) return Algorithm::signal;
  if (call.kind != CollectiveKind::all_reduce) return Algorithm::pull;
  return bytes <= kMailboxBytes && group_size > 1 ? Algorithm::mailbox : Algorithm::push;
}

void prepare(Algorithm algorithm, const CollectiveCall& call, const GroupMemory& group) {
  if (algorithm != Algorithm::mailbox) return;
  const auto index = static_cast<std::size_t>(group.index);
  copy_bytes(group.mailboxes[index], group.arenas[index] + call.source,
             static_cast<std::size_t>(call.count) * element_bytes(call));
}

void perform(Algorithm algorithm, const CollectiveCall& call, const GroupMemory& group) {
  switch (algorithm) {
    case Algorithm::signal: return;
    case Algorithm::mailbox: return reduce_mailboxes(call, group);
    case Algorithm::push: return push_slice(call, group);
    case Algorithm::pull: return pull(call, group);
  }
}

}  // namespace weft
