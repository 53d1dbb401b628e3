#include "tests/conformance/collective_cases.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <random>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>

#include <weft/tensor/error.hpp>

#include "transport/collectives/algorithm.hpp"
#include "transport/job/control_format.hpp"
#include "transport/reduce/copy.hpp"

namespace weft::testing {
namespace {

constexpr std::uint64_t kSource = kArenaTempOffset;

int pick(std::uint64_t seed, std::uint64_t bit, std::int64_t choices) {
  return static_cast<int>((seed >> bit) % static_cast<std::uint64_t>(choices));
}

/// Places the destination on the source (in place), or behind it with a gap.
void place_destination(CollectiveCall& call, int n, std::uint64_t seed) {
  const std::uint64_t source_bytes = bytes_of(call, n).source;
  const bool in_place =
      call.kind == CollectiveKind::all_reduce || call.kind == CollectiveKind::broadcast;
  call.destination = in_place && pick(seed, 3, 2) != 0
                         ? call.source
                         : (call.source + source_bytes + 127) / 64 * 64;
}

/// Returns the greatest count for which `holds` is true. `holds` has to be true for 0; where it is
/// false, it has to be false for all greater counts, too.
std::int64_t last_count(const std::function<bool(std::int64_t count)>& holds) {
  constexpr std::int64_t kCountMax = 1 << 25;
  const auto counts = std::views::iota(std::int64_t{0}, kCountMax);
  const auto first_not = std::ranges::partition_point(counts, holds);
  WEFT_CHECK(first_not != counts.end(), kCountMax);
  return *first_not - 1;
}

}  // namespace

Mesh reversed_mesh(std::vector<std::int64_t> shape) {
  std::int64_t size = 1;
  std::vector<std::string> names;
  for (const std::int64_t axis : shape) {
    size *= axis;
    names.push_back(fmt::format("axis{}", names.size()));
  }
  std::vector<int> ids;
  for (std::int64_t id = size; id-- > 0;) ids.push_back(static_cast<int>(id));
  return Mesh(std::move(shape), std::move(names), std::move(ids));
}

CollectiveCase make_case(CollectiveKind kind, DType dtype, AtomList atoms, int n,
                         std::int64_t count, std::uint64_t seed) {
  CollectiveCase which;
  which.seed = seed;
  CollectiveCall& call = which.call;
  call.kind = kind;
  call.dtype = dtype;
  call.atoms = atoms;
  call.count = count;
  call.source = kSource;
  call.name = "case";
  call.reduce = dtype == DType::pred ? ReduceKind::max : ReduceKind::add;
  if (kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter) {
    call.outer = 1 + pick(seed, 0, 3);
  }
  if (kind == CollectiveKind::all_to_all) {
    const std::int64_t dims[] = {2 * n, 3, n, count % 97};
    call.shape = Shape{dims[0], dims[1], dims[2], dims[3]};
    call.split_dim = 2 * pick(seed, 0, 2);
    call.concat_dim = pick(seed, 1, 4);
  }
  if (kind == CollectiveKind::broadcast) call.from = {pick(seed, 0, n)};
  if (kind == CollectiveKind::permute) {
    for (int i = 0; i < n; ++i) call.from.push_back((i + pick(seed, 0, n)) % n);
  }
  place_destination(call, n, seed);
  return which;
}

CollectiveCase make_row_case(CollectiveKind kind, DType dtype, AtomList atoms, int n,
                             std::int64_t count, std::uint64_t seed) {
  CollectiveCase which = make_case(kind, dtype, atoms, n, count, seed);
  which.call.outer = 1;
  if (kind == CollectiveKind::all_to_all) {
    which.call.shape = Shape{n, count};
    which.call.split_dim = 0;
    which.call.concat_dim = 1;
  }
  place_destination(which.call, n, seed);
  return which;
}

std::int64_t last_count_in_lines(CollectiveKind kind, DType dtype, AtomList atoms, int n) {
  return last_count([&](std::int64_t count) {
    const CollectiveCall call = make_row_case(kind, dtype, atoms, n, count, 0).call;
    return bytes_of(call, n).source <= kLineMailboxBytes;
  });
}

std::int64_t last_count_in_mailboxes(CollectiveKind kind, DType dtype, AtomList atoms, int n,
                                     bool crowded) {
  return last_count([&](std::int64_t count) {
    const CollectiveCall call = make_row_case(kind, dtype, atoms, n, count, 0).call;
    return !has_exit_sync(choose_algorithm(call, n, crowded));
  });
}

std::int64_t last_count_in_caches(CollectiveKind kind, DType dtype, AtomList atoms, int n) {
  return last_count([&](std::int64_t count) {
    const CollectiveCall call = make_row_case(kind, dtype, atoms, n, count, 0).call;
    return bytes_of(call, n).destination < kPastCachesBytes;
  });
}

std::vector<CollectiveCase> random_cases(const Mesh& mesh, std::size_t count, std::uint64_t seed,
                                         const RandomSizes& sizes) {
  std::mt19937_64 random(seed);
  std::vector<CollectiveCase> cases;
  for (std::size_t i = 0; i < count; ++i) {
    AtomList atoms;
    for (int tries = 0; tries < mesh.num_atoms(); ++tries) {
      const auto atom = static_cast<Atom>(1 + random() % static_cast<unsigned>(mesh.num_atoms()));
      if (!atoms.contains(atom)) atoms.push_back(atom);
    }
    const auto n = static_cast<int>(mesh.count(atoms));
    const std::uint64_t size_max = random() % 16 == 0 ? sizes.rare_max : sizes.usual_max;
    const auto size = static_cast<std::int64_t>(random() % size_max);
    if (random() % 8 == 0) {
      cases.push_back(make_case(CollectiveKind::barrier, DType::f32, atoms, n, 0, random()));
    } else {
      cases.push_back(make_case(kDataKinds[random() % std::size(kDataKinds)],
                                kDTypes[random() % std::size(kDTypes)], atoms, n, size, random()));
    }
    solve(cases.back(), mesh);
  }
  return cases;
}

std::size_t capacity_for(const std::vector<CollectiveCase>& cases, const Mesh& mesh) {
  std::size_t bytes = 2 * kArenaCapacityUnit;
  for (const CollectiveCase& which : cases) {
    const auto n = static_cast<int>(mesh.count(which.call.atoms));
    bytes = std::max(bytes, which.call.destination + bytes_of(which.call, n).destination);
  }
  return (bytes + kArenaCapacityUnit - 1) / kArenaCapacityUnit * kArenaCapacityUnit;
}

void place_operand(const CollectiveCase& which, int position, std::byte* arena) {
  const std::vector<std::byte>& bytes = which.operands[static_cast<std::size_t>(position)];
  if (!bytes.empty()) std::memcpy(arena + which.call.source, bytes.data(), bytes.size());
}

void check_result(const CollectiveCase& which, const Mesh& mesh, int position,
                  const std::byte* arena) {
  const std::vector<std::byte>& expected = which.results[static_cast<std::size_t>(position)];
  const std::byte* actual = arena + which.call.destination;
  if (expected.empty() || std::memcmp(actual, expected.data(), expected.size()) == 0) return;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (actual[i] == expected[i]) continue;
    throw std::runtime_error(
        fmt::format("position {} of {}: {} of {} {} x {} [{}] over {:#x}, seed {}: byte {} of {} "
                    "is {:02x}, not "
                    "{:02x}",
                    position, mesh.to_string(), to_string(which.call.kind),
                    to_string(which.call.dtype), which.call.outer, which.call.count,
                    which.call.shape.to_string(), which.call.atoms.bits(), which.seed, i,
                    expected.size(), static_cast<int>(actual[i]), static_cast<int>(expected[i])));
  }
}

void run_cases(const std::vector<CollectiveCase>& cases, const Mesh& mesh, const TeamChip& chip,
               const WaitPolicy& policy) {
  const int position = mesh.position_of(chip.id);
  PreparingCommunicator communicator = chip.communicator(mesh, policy);
  for (const CollectiveCase& which : cases) {
    place_operand(which, position, chip.arena());
    communicator.run(which.call);
    check_result(which, mesh, position, chip.arena());
  }
}

}  // namespace weft::testing
