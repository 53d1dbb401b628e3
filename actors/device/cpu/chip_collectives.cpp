#include "actors/device/cpu/chip_collectives.hpp"

#include <algorithm>
#include <functional>
#include <string>

#include <fmt/format.h>

#include <weft/error.hpp>

namespace weft {
namespace {

/// More call sites than this come from sizes that never repeat, so they aren't worth keeping.
constexpr std::size_t kPreparedCountMax = 4096;

std::size_t rounded(std::size_t bytes) {
  return (bytes + kOffsetAlignment - 1) / kOffsetAlignment * kOffsetAlignment;
}

std::string describe(const std::source_location& where) {
  const std::string_view path = where.file_name();
  return fmt::format("{}:{}", path.substr(path.find_last_of('/') + 1), where.line());
}

bool has_one_span(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast;
}

bool overlap(ConstElementSpan a, ConstElementSpan b) {
  const auto end = [](ConstElementSpan span) {
    return span.data() + span.size() * byte_size(span.dtype());
  };
  const std::less<const std::byte*> before;
  return before(a.data(), end(b)) && before(b.data(), end(a));
}

void set_count(CollectiveCall& call, std::int64_t count, std::int64_t group_size) {
  call.count = count;
  if (call.kind == CollectiveKind::all_to_all) call.shape = {count * group_size};
}

}  // namespace

/// Source and destination consist of parts of `count` elements: one per chip of the group, or a
/// single one.
struct ChipCollectives::Parts {
  std::int64_t count = 0;
  std::int64_t group_size = 1;
  std::int64_t in_source = 1;
  std::int64_t in_destination = 1;

  Parts(CollectiveKind kind, std::int64_t source_size, std::int64_t chips) : group_size(chips) {
    const bool swaps = kind == CollectiveKind::all_to_all;
    if (swaps || kind == CollectiveKind::reduce_scatter) in_source = chips;
    if (swaps || kind == CollectiveKind::all_gather) in_destination = chips;
    count = source_size / in_source;
  }
};

ChipCollectives::ChipCollectives(JobMemory& memory, const Mesh& mesh, int position, int local_index,
                                 Communicator& communicator)
    : memory_(memory),
      mesh_(mesh),
      position_(position),
      arena_(mesh.device_at(position)),
      communicator_(communicator),
      chip_(*this, mesh, position, local_index) {}

void ChipCollectives::carry_out(CollectiveCall call, ConstElementSpan source,
                                ElementSpan destination, const std::source_location& where) {
  const Parts parts(call.kind, source.size(), mesh_.count(call.atoms));
  if (parts.count * parts.in_source != source.size()) {
    fail(Errc::invalid_argument,
         "{} at {}: {} elements can't be cut in equal parts for the {} chips of the group",
         to_string(call.kind), describe(where), source.size(), parts.group_size);
  }
  const std::int64_t results = parts.count * parts.in_destination;
  if (destination.size() != results || destination.dtype() != source.dtype()) {
    fail(Errc::invalid_argument,
         "{} at {}: of {} elements of {}, the {} chips of the group get {} of {} each, but there "
         "is room for {} of {}",
         to_string(call.kind), describe(where), source.size(), to_string(source.dtype()),
         parts.group_size, results, to_string(source.dtype()), destination.size(),
         to_string(destination.dtype()));
  }
  if (!has_one_span(call.kind) && overlap(source, destination)) {
    fail(Errc::invalid_argument, "{} at {}: operand and result overlap", to_string(call.kind),
         describe(where));
  }
  call.dtype = source.dtype();
  const std::optional<std::uint64_t> from = place_in_arena(source.data());
  const std::optional<std::uint64_t> to = place_in_arena(destination.data());
  if (!from || !to) return carry_out_staged(call, parts, source.data(), destination.data(), where);
  call.source = *from;
  call.destination = *to;
  set_count(call, parts.count, parts.group_size);
  this->call(call, where);
}

void ChipCollectives::carry_out_staged(CollectiveCall& call, const Parts& parts,
                                       const std::byte* source, std::byte* destination,
                                       const std::source_location& where) {
  const auto element = static_cast<std::size_t>(byte_size(call.dtype));
  const bool one_span = has_one_span(call.kind);
  const auto staged_parts =
      static_cast<std::size_t>(parts.in_source + (one_span ? 0 : parts.in_destination));
  const std::size_t room = std::min(kStagingBytes, memory_.buffers_offset() - kArenaTempOffset);
  const std::size_t usable = room - (one_span ? 0 : kOffsetAlignment);  // room to align the result
  const auto piece = static_cast<std::int64_t>(usable / (element * staged_parts));
  if (piece == 0) {
    fail(Errc::no_space, "{} at {}: an element of each of {} chips doesn't fit in {} bytes",
         to_string(call.kind), describe(where), parts.group_size, usable);
  }
  const bool is_broadcast = call.kind == CollectiveKind::broadcast;
  const bool is_root = is_broadcast && mesh_.index_in(position_, call.atoms) == call.from[0];

  call.source = kArenaTempOffset;
  std::int64_t done = 0;
  do {
    const std::int64_t count = std::min(piece, parts.count - done);
    const std::size_t bytes = static_cast<std::size_t>(count) * element;
    const auto piece_of_part = [&](std::int64_t part) {
      return static_cast<std::size_t>(part * parts.count + done) * element;
    };
    const auto staged = [&](std::uint64_t begin, std::int64_t part) {
      return address(begin + static_cast<std::size_t>(part) * bytes);
    };
    const std::size_t operand_bytes = static_cast<std::size_t>(parts.in_source) * bytes;
    call.destination = one_span ? call.source : call.source + rounded(operand_bytes);
    memory_.reserve(
        arena_, call.source,
        call.destination - call.source + static_cast<std::size_t>(parts.in_destination) * bytes);
    for (std::int64_t part = 0; part < parts.in_source && (!is_broadcast || is_root); ++part) {
      std::copy_n(source + piece_of_part(part), bytes, staged(call.source, part));
    }
    set_count(call, count, parts.group_size);
    this->call(call, where, parts.count);
    for (std::int64_t part = 0; part < parts.in_destination && !is_root; ++part) {
      std::copy_n(staged(call.destination, part), bytes, destination + piece_of_part(part));
    }
    done += count;
  } while (done < parts.count);
}

std::optional<std::uint64_t> ChipCollectives::place_in_arena(const std::byte* data) const {
  const auto arena = reinterpret_cast<std::uintptr_t>(memory_.arena(arena_));
  const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(data) - arena;  // large if outside
  if (offset >= memory_.arena_capacity() || offset % kOffsetAlignment != 0) return {};
  return offset;
}

void ChipCollectives::call(CollectiveCall& call, const std::source_location& where,
                           std::int64_t whole) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // spreads the bodies' tags over all words
  call.tag = (body_ + 1) * kOdd + static_cast<std::uint64_t>(whole);
  const CallSite site{encode(call), where.file_name(), where.line()};
  auto found = prepared_.find(site);
  if (found == prepared_.end()) {
    std::string name = describe(where);
    if (whole != 0) name += fmt::format(", of {}", whole);
    if (call.kind == CollectiveKind::broadcast) name += fmt::format(", root {}", call.from[0]);
    CollectiveCall named = call;
    named.name = name;
    found = prepared_.emplace(site, communicator_.prepare(named)).first;
  }
  communicator_.run(found->second);
  // Not before: the communicator still refers to a call that failed.
  if (prepared_.size() >= kPreparedCountMax) prepared_.clear();
}

}  // namespace weft
