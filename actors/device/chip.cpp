#include <weft/actors/device/chip.hpp>

#include <algorithm>
#include <functional>
#include <string>

#include <fmt/format.h>

#include <weft/spmd/error.hpp>

namespace weft {
namespace {

/// A program whose sizes never repeat makes more call sites than can be of use again.
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

/// Source and destination are as many parts of `count` elements each: one for every chip of the
/// group, or one for all.
struct Chip::Parts {
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

Chip::Chip(JobMemory& memory, const Mesh& mesh, int position, int local_index,
           Communicator& communicator)
    : memory_(memory),
      mesh_(mesh),
      position_(position),
      local_index_(local_index),
      arena_(mesh.device_at(position)),
      communicator_(communicator) {}

AtomList Chip::atoms_of(const Axes& axes) const {
  const std::span<const std::string_view> names = axes.names();
  AtomList atoms;
  if (names.empty()) {
    for (int axis = 0; axis < mesh_.num_axes(); ++axis) atoms.append(mesh_.axis_atoms(axis));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!mesh_.has_axis(names[i])) mesh_.axis_size(names[i]);  // throws, and says which there are
    const auto before = names.first(i);
    if (std::ranges::find(before, names[i]) != before.end()) {
      fail(Errc::invalid_argument, "axes: \"{}\" is named twice", names[i]);
    }
    atoms.append(mesh_.axis_atoms(mesh_.axis_index(names[i])));
  }
  return atoms;
}

int Chip::group_size(const Axes& axes) const {
  return static_cast<int>(mesh_.count(atoms_of(axes)));
}

int Chip::group_index(const Axes& axes) const {
  return static_cast<int>(mesh_.index_in(position_, atoms_of(axes)));
}

void Chip::barrier(const Axes& axes, Location where) {
  CollectiveCall barrier{.kind = CollectiveKind::barrier, .atoms = atoms_of(axes)};
  call(barrier, where);
}

void Chip::all_reduce(ElementSpan values, const Axes& axes, ReduceKind reduce, Location where) {
  carry_out({.kind = CollectiveKind::all_reduce, .atoms = atoms_of(axes), .reduce = reduce}, values,
            values, where);
}

void Chip::all_gather(ConstElementSpan part, ElementSpan whole, const Axes& axes, Location where) {
  carry_out({.kind = CollectiveKind::all_gather, .atoms = atoms_of(axes)}, part, whole, where);
}

void Chip::reduce_scatter(ConstElementSpan whole, ElementSpan part, const Axes& axes,
                          ReduceKind reduce, Location where) {
  carry_out({.kind = CollectiveKind::reduce_scatter, .atoms = atoms_of(axes), .reduce = reduce},
            whole, part, where);
}

void Chip::all_to_all(ConstElementSpan parts, ElementSpan received, const Axes& axes,
                      Location where) {
  carry_out({.kind = CollectiveKind::all_to_all, .atoms = atoms_of(axes)}, parts, received, where);
}

void Chip::broadcast(ElementSpan values, int root, const Axes& axes, Location where) {
  carry_out({.kind = CollectiveKind::broadcast, .atoms = atoms_of(axes), .from = {root}}, values,
            values, where);
}

void Chip::permute(ConstElementSpan values, ElementSpan received, std::span<const int> sources,
                   const Axes& axes, Location where) {
  carry_out({.kind = CollectiveKind::permute,
             .atoms = atoms_of(axes),
             .from = {sources.begin(), sources.end()}},
            values, received, where);
}

void Chip::carry_out(CollectiveCall call, ConstElementSpan source, ElementSpan destination,
                     const Location& where) {
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

void Chip::carry_out_staged(CollectiveCall& call, const Parts& parts, const std::byte* source,
                            std::byte* destination, const Location& where) {
  const auto element = static_cast<std::size_t>(byte_size(call.dtype));
  const bool one_span = has_one_span(call.kind);
  const auto staged_parts =
      static_cast<std::size_t>(parts.in_source + (one_span ? 0 : parts.in_destination));
  const std::size_t room = std::min(kStagingBytes, memory_.buffers_offset() - kArenaTempOffset);
  const std::size_t usable = room - (one_span ? 0 : kOffsetAlignment);  // the result is aligned
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

std::optional<std::uint64_t> Chip::place_in_arena(const std::byte* data) const {
  const auto arena = reinterpret_cast<std::uintptr_t>(memory_.arena(arena_));
  const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(data) - arena;  // or beyond all
  if (offset >= memory_.arena_capacity() || offset % kOffsetAlignment != 0) return {};
  return offset;
}

void Chip::call(CollectiveCall& call, const Location& where, std::int64_t whole) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // spreads bodies over all words
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
  // Only now: one that failed is never done.
  if (prepared_.size() >= kPreparedCountMax) prepared_.clear();
}

}  // namespace weft
