#include <weft/actors/device/chip.hpp>

#include <algorithm>
#include <cstring>
#include <functional>

#include <weft/spmd/error.hpp>

namespace weft {
namespace {

/// Of the arena, for operands and results from elsewhere. More bytes are copied in pieces: larger
/// ones would leave the caches before they are read again.
constexpr std::size_t kStagingBytes = std::size_t{512} << 10;
constexpr std::size_t kAlignment = 64;
/// A program whose sizes never repeat makes more call sites than can be of use again.
constexpr std::size_t kPreparedCountMax = 4096;

std::size_t rounded(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Source and destination are as many runs of `count` elements each, one of them for every chip of
/// the group or one for all.
struct Runs {
  std::size_t source = 1;
  std::size_t destination = 1;
};

Runs runs_of(CollectiveKind kind, std::size_t group_size) {
  switch (kind) {
    case CollectiveKind::all_gather: return {1, group_size};
    case CollectiveKind::reduce_scatter: return {group_size, 1};
    case CollectiveKind::all_to_all: return {group_size, group_size};
    default: return {1, 1};
  }
}

void set_count(CollectiveCall& call, std::int64_t count, std::size_t group_size) {
  call.count = count;
  if (call.kind != CollectiveKind::all_to_all) return;
  call.shape = {count * static_cast<std::int64_t>(group_size)};
}

std::string describe(const std::source_location& where) {
  const std::string_view path = where.file_name();
  return fmt::format("{}:{}", path.substr(path.find_last_of('/') + 1), where.line());
}

}  // namespace

Chip::Chip(JobMemory& memory, const Mesh& mesh, int position, Communicator& communicator)
    : memory_(memory),
      mesh_(mesh),
      position_(position),
      arena_(mesh.device_at(position)),
      communicator_(communicator) {}

AtomList Chip::atoms_of(Axes axes) const {
  AtomList atoms;
  if (axes.size() == 0) {
    for (int axis = 0; axis < mesh_.num_axes(); ++axis) atoms.append(mesh_.axis_atoms(axis));
  }
  for (const std::string_view* name = axes.begin(); name != axes.end(); ++name) {
    if (!mesh_.has_axis(*name)) mesh_.axis_size(*name);  // throws
    if (std::find(axes.begin(), name, *name) != name) {
      fail(Errc::invalid_argument, "axes: \"{}\" is named twice", *name);
    }
    atoms.append(mesh_.axis_atoms(mesh_.axis_index(*name)));
  }
  return atoms;
}

int Chip::group_size(Axes axes) const { return static_cast<int>(mesh_.count(atoms_of(axes))); }

int Chip::group_index(Axes axes) const {
  return static_cast<int>(mesh_.index_in(position_, atoms_of(axes)));
}

std::byte* Chip::address(std::uint64_t offset) const { return memory_.arena(arena_) + offset; }

void Chip::barrier(Axes axes, Location where) {
  run({.kind = CollectiveKind::barrier, .atoms = atoms_of(axes)}, where);
}

void Chip::all_reduce(ElementSpan values, Axes axes, ReduceKind reduce, Location where) {
  carry_out({.kind = CollectiveKind::all_reduce, .atoms = atoms_of(axes), .reduce = reduce}, values,
            values, where);
}

void Chip::all_gather(ConstElementSpan part, ElementSpan whole, Axes axes, Location where) {
  carry_out({.kind = CollectiveKind::all_gather, .atoms = atoms_of(axes)}, part, whole, where);
}

void Chip::reduce_scatter(ConstElementSpan whole, ElementSpan part, Axes axes, ReduceKind reduce,
                          Location where) {
  carry_out({.kind = CollectiveKind::reduce_scatter, .atoms = atoms_of(axes), .reduce = reduce},
            whole, part, where);
}

void Chip::all_to_all(ConstElementSpan parts, ElementSpan received, Axes axes, Location where) {
  carry_out({.kind = CollectiveKind::all_to_all, .atoms = atoms_of(axes)}, parts, received, where);
}

void Chip::broadcast(ElementSpan values, int root, Axes axes, Location where) {
  carry_out({.kind = CollectiveKind::broadcast, .atoms = atoms_of(axes), .from = {root}}, values,
            values, where);
}

void Chip::permute(ConstElementSpan values, ElementSpan received, std::span<const int> sources,
                   Axes axes, Location where) {
  carry_out({.kind = CollectiveKind::permute,
             .atoms = atoms_of(axes),
             .from = {sources.begin(), sources.end()}},
            values, received, where);
}

void Chip::carry_out(CollectiveCall call, ConstElementSpan source, ElementSpan destination,
                     const Location& where) {
  const auto group_size = static_cast<std::size_t>(mesh_.count(call.atoms));
  const Runs runs = runs_of(call.kind, group_size);
  const std::int64_t count = source.size() / static_cast<std::int64_t>(runs.source);
  if (source.size() % static_cast<std::int64_t>(runs.source) != 0) {
    fail(Errc::invalid_argument,
         "{} at {}: {} elements can't be cut in equal parts for the {} chips of the group",
         to_string(call.kind), describe(where), source.size(), group_size);
  }
  const std::int64_t results = count * static_cast<std::int64_t>(runs.destination);
  if (destination.size() != results || destination.dtype() != source.dtype()) {
    fail(Errc::invalid_argument,
         "{} at {}: of {} elements of {}, the {} chips of the group get {} of {} each, but there "
         "is room for {} of {}",
         to_string(call.kind), describe(where), source.size(), to_string(source.dtype()),
         group_size, results, to_string(source.dtype()), destination.size(),
         to_string(destination.dtype()));
  }
  call.dtype = source.dtype();
  const std::optional<std::uint64_t> from = place_in_arena(source.data());
  const std::optional<std::uint64_t> to = place_in_arena(destination.data());
  if (!from || !to) return carry_out_staged(call, count, source.data(), destination.data(), where);
  call.source = *from;
  call.destination = *to;
  set_count(call, count, group_size);
  run(call, where);
}

void Chip::carry_out_staged(CollectiveCall& call, std::int64_t count, const std::byte* source,
                            std::byte* destination, const Location& where) {
  const auto group_size = static_cast<std::size_t>(mesh_.count(call.atoms));
  const Runs runs = runs_of(call.kind, group_size);
  const auto element = static_cast<std::size_t>(byte_size(call.dtype));
  const bool is_broadcast = call.kind == CollectiveKind::broadcast;
  const bool in_place = is_broadcast || call.kind == CollectiveKind::all_reduce;
  const std::size_t all_runs = runs.source + (in_place ? 0 : runs.destination);
  const auto piece =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(kStagingBytes / (element * all_runs)));
  const bool is_root = is_broadcast && mesh_.index_in(position_, call.atoms) == call.from[0];

  std::byte* arena = memory_.arena(arena_);
  call.source = kArenaTempOffset;
  std::int64_t done = 0;
  do {
    const std::int64_t part = std::min(piece, count - done);
    const std::size_t part_bytes = static_cast<std::size_t>(part) * element;
    const auto run_of = [&](std::size_t run) {
      return (run * static_cast<std::size_t>(count) + static_cast<std::size_t>(done)) * element;
    };
    call.destination = in_place ? call.source : call.source + rounded(runs.source * part_bytes);
    memory_.reserve(arena_, call.source,
                    call.destination - call.source + runs.destination * part_bytes);
    for (std::size_t i = 0; i < runs.source && (!is_broadcast || is_root); ++i) {
      std::memcpy(arena + call.source + i * part_bytes, source + run_of(i), part_bytes);
    }
    set_count(call, part, group_size);
    run(call, where);
    for (std::size_t i = 0; i < runs.destination && !is_root; ++i) {
      std::memcpy(destination + run_of(i), arena + call.destination + i * part_bytes, part_bytes);
    }
    done += part;
  } while (done < count);
}

std::optional<std::uint64_t> Chip::place_in_arena(const std::byte* data) const {
  const std::byte* arena = memory_.arena(arena_);
  const auto offset = static_cast<std::uint64_t>(data - arena);
  if (std::less<>()(data, arena) || offset >= memory_.arena_capacity() ||
      offset % kAlignment != 0) {
    return {};
  }
  return offset;
}

void Chip::run(const CollectiveCall& call, const Location& where) {
  const CallSite site{encode(call), where.file_name(), where.line()};
  auto found = prepared_.find(site);
  if (found == prepared_.end()) {
    if (prepared_.size() == kPreparedCountMax) prepared_.clear();
    CollectiveCall named = call;
    const std::string name = describe(where);
    named.name = name;
    found = prepared_.emplace(site, communicator_.prepare(named)).first;
  }
  communicator_.run(found->second);
}

}  // namespace weft
