#include "transport/collectives/collective_call.hpp"

#include <algorithm>
#include <initializer_list>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

[[noreturn]] void fail_call(const CollectiveCall& call, std::string_view why) {
  fail(Errc::invalid_argument, "{} '{}': {}", to_string(call.kind), call.name, why);
}

std::uint64_t checked_bytes(const CollectiveCall& call,
                            std::initializer_list<std::int64_t> factors) {
  std::uint64_t bytes = static_cast<std::uint64_t>(byte_size(call.dtype));
  for (const std::int64_t factor : factors) {
    if (factor < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(factor), &bytes)) {
      fail_call(call,
                fmt::format("outer = {}, count = {}: sizes must be 0 or more and fit in 64 bits",
                            call.outer, call.count));
    }
  }
  return bytes;
}

void require_all_to_all(const CollectiveCall& call, int group_size) {
  const int dims = call.shape.size();
  if (call.split_dim < 0 || call.split_dim >= dims || call.concat_dim < 0 ||
      call.concat_dim >= dims) {
    fail_call(call, fmt::format("split_dim = {}, concat_dim = {}: the operand has {} dims",
                                call.split_dim, call.concat_dim, dims));
  }
  if (call.shape[call.split_dim] % group_size != 0) {
    fail_call(call, fmt::format("split_dim {} of [{}] isn't divisible by the {} chips of the group",
                                call.split_dim, call.shape.to_string(), group_size));
  }
}

void require_from(const CollectiveCall& call, int group_size) {
  const std::size_t expected =
      call.kind == CollectiveKind::broadcast ? 1 : static_cast<std::size_t>(group_size);
  const auto in_group = [group_size](int index) { return index >= 0 && index < group_size; };
  if (call.from.size() != expected || !std::all_of(call.from.begin(), call.from.end(), in_group)) {
    fail_call(call, fmt::format("from = [{}]: expected {} group indices from 0 to {}",
                                fmt::join(call.from, ", "), expected, group_size - 1));
  }
}

void require_ranges(const CollectiveCall& call, CallBytes bytes, std::size_t capacity) {
  const auto in_arena = [capacity](std::uint64_t offset, std::uint64_t size) {
    return offset % kOffsetAlignment == 0 && offset <= capacity && size <= capacity - offset;
  };
  if (!in_arena(call.source, bytes.source) || !in_arena(call.destination, bytes.destination)) {
    fail_call(call, fmt::format(
                        "source {} + {}, destination {} + {}: expected offsets that are multiples "
                        "of {} and ranges within the arena's {} bytes",
                        call.source, bytes.source, call.destination, bytes.destination,
                        kOffsetAlignment, capacity));
  }
  const bool in_place =
      call.source == call.destination && (call.shared || call.kind == CollectiveKind::all_reduce ||
                                          call.kind == CollectiveKind::broadcast);
  const bool disjoint = call.source + bytes.source <= call.destination ||
                        call.destination + bytes.destination <= call.source;
  if (!in_place && !disjoint) {
    fail_call(call, fmt::format("source {} + {} and destination {} + {} overlap", call.source,
                                bytes.source, call.destination, bytes.destination));
  }
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter;
}

std::uint64_t details_of(const CollectiveCall& call) {
  std::uint64_t hash = 0;
  if (call.kind == CollectiveKind::all_to_all) {
    for (const std::int64_t dim : call.shape)
      hash = mix_word(hash, static_cast<std::uint64_t>(dim) + 1);
    hash = mix_word(hash, static_cast<std::uint64_t>(call.split_dim));
    hash = mix_word(hash, static_cast<std::uint64_t>(call.concat_dim) + 1);
  } else {
    for (const int index : call.from) hash = mix_word(hash, static_cast<std::uint64_t>(index) + 1);
  }
  if (call.tag != 0) hash = mix_word(hash, call.tag);
  return hash;
}

}  // namespace

std::string_view to_string(CollectiveKind kind) noexcept {
  switch (kind) {
    case CollectiveKind::barrier: return "barrier";
    case CollectiveKind::all_reduce: return "all_reduce";
    case CollectiveKind::all_gather: return "all_gather";
    case CollectiveKind::reduce_scatter: return "reduce_scatter";
    case CollectiveKind::all_to_all: return "all_to_all";
    case CollectiveKind::permute: return "permute";
    case CollectiveKind::broadcast: return "broadcast";
  }
  return "unknown";
}

CallBytes bytes_of(const CollectiveCall& call, int group_size) {
  switch (call.kind) {
    case CollectiveKind::barrier: return {};
    case CollectiveKind::all_reduce:
    case CollectiveKind::permute:
    case CollectiveKind::broadcast: {
      const std::uint64_t bytes = checked_bytes(call, {call.count});
      return {bytes, bytes};
    }
    case CollectiveKind::all_gather:
      return {checked_bytes(call, {call.outer, call.count}),
              checked_bytes(call, {call.outer, call.count, group_size})};
    case CollectiveKind::reduce_scatter:
      return {checked_bytes(call, {call.outer, call.count, group_size}),
              checked_bytes(call, {call.outer, call.count})};
    case CollectiveKind::all_to_all: {
      const std::uint64_t bytes = checked_bytes(call, {call.shape.num_elements()});
      return {bytes, bytes};
    }
  }
  fail_call(call, "unknown kind of collective");
}

void require_valid(const CollectiveCall& call, int group_size, std::size_t arena_capacity) {
  switch (call.kind) {
    case CollectiveKind::barrier: return;
    case CollectiveKind::all_to_all: require_all_to_all(call, group_size); break;
    case CollectiveKind::permute:
    case CollectiveKind::broadcast: require_from(call, group_size); break;
    default: break;
  }
  if (reduces(call.kind) && call.dtype == DType::pred && call.reduce == ReduceKind::add) {
    fail_call(call, "pred can't be added: use max for \"any\", min for \"all\"");
  }
  const bool may_be_shared =
      call.kind == CollectiveKind::all_gather ||
      (call.kind == CollectiveKind::reduce_scatter && call.source == call.destination);
  if (call.shared && !may_be_shared) {
    fail_call(call,
              "shared = true: only the result of an all_gather can be shared, and the sources "
              "of a reduce_scatter whose destination is its source");
  }
  const CallBytes bytes = bytes_of(call, group_size);
  if (bytes.source != 0) require_ranges(call, bytes, arena_capacity);
}

CallWords encode(const CollectiveCall& call) {
  return {static_cast<std::uint64_t>(call.kind) | static_cast<std::uint64_t>(call.dtype) << 8 |
              static_cast<std::uint64_t>(call.reduce) << 16 |
              static_cast<std::uint64_t>(call.shared) << 24,
          call.atoms.bits(),
          static_cast<std::uint64_t>(call.outer),
          static_cast<std::uint64_t>(call.count),
          call.source,
          call.destination,
          details_of(call)};
}

DecodedCall decode(const CallWords& words) {
  return {.kind = static_cast<CollectiveKind>(words[0] & 0xffU),
          .reduce = static_cast<ReduceKind>(words[0] >> 16 & 0xffU),
          .dtype = static_cast<DType>(words[0] >> 8 & 0xffU),
          .shared = (words[0] >> 24 & 1U) != 0,
          .atoms = AtomList::from_bits(words[1]),
          .outer = static_cast<std::int64_t>(words[2]),
          .count = static_cast<std::int64_t>(words[3]),
          .source = words[4],
          .destination = words[5],
          .details = words[6]};
}

std::uint64_t digest_of(const CallWords& words) noexcept {
  std::uint64_t hash = 0;
  for (const std::uint64_t word : words) hash = mix_word(hash, word);
  return hash;
}

}  // namespace weft
