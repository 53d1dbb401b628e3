/// Tries every kind, dtype and reduction at the sizes at which a collective changes its algorithm.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "tests/conformance/chip_team.hpp"
#include "tests/conformance/collective_cases.hpp"

namespace weft::testing::collective_sizes_test {
namespace {

/// Returns 0, 1, an odd and a prime count, and counts just below, at and just above the last count
/// that fits in a line and the last one that goes through mailboxes.
std::set<std::int64_t> interesting_counts(CollectiveKind kind, DType dtype, AtomList atoms, int n,
                                          bool crowded) {
  std::set<std::int64_t> counts{0, 1, 15, 251};
  for (const std::int64_t last : {last_count_in_lines(kind, dtype, atoms, n),
                                  last_count_in_mailboxes(kind, dtype, atoms, n, crowded)}) {
    for (const std::int64_t count : {last - 1, last, last + 1}) {
      counts.insert(std::max<std::int64_t>(count, 0));
    }
  }
  return counts;
}

std::vector<ReduceKind> reductions(CollectiveKind kind, DType dtype) {
  if (kind != CollectiveKind::all_reduce && kind != CollectiveKind::reduce_scatter) {
    return {ReduceKind::add};
  }
  if (dtype == DType::pred) return {ReduceKind::max, ReduceKind::min};
  return {ReduceKind::add, ReduceKind::max, ReduceKind::min};
}

std::vector<CollectiveCase> cases_of_every_size(const Mesh& mesh, bool crowded) {
  const AtomList atoms = mesh.axis_atoms(0);
  const int n = mesh.size();
  std::vector<CollectiveCase> cases;
  for (const CollectiveKind kind : kDataKinds) {
    for (const DType dtype : kDTypes) {
      for (const std::int64_t count : interesting_counts(kind, dtype, atoms, n, crowded)) {
        for (const ReduceKind reduce : reductions(kind, dtype)) {
          cases.push_back(make_row_case(kind, dtype, atoms, n, count, cases.size()));
          cases.back().call.reduce = reduce;
          solve(cases.back(), mesh);
        }
      }
    }
  }
  return cases;
}

/// Returns only small sizes if WEFT_TEST_TIMES is below 1, as it is under sanitizers, because
/// groups of 8 and 16 take most of the time. Teams over wires have fewer sizes, because each chip
/// has a connection to every other chip.
std::vector<int> group_sizes(bool has_hosts) {
  const char* times = std::getenv("WEFT_TEST_TIMES");
  if (has_hosts || (times != nullptr && std::stod(times) < 1)) return {2, 3, 5};
  return {2, 3, 4, 5, 8, 16};
}

template <typename Team>
class CollectiveSizes : public TeamTest<Team> {
 protected:
  /// Tests the algorithms that a job chooses if it has more chips than cores (`crowded`), or a core
  /// for each chip.
  void expect_all_conform(bool crowded) {
    for (const int n : group_sizes(Team::kHasHosts)) {
      SCOPED_TRACE(n);
      const Mesh mesh = reversed_mesh({n});
      expect_conforms<Team>(mesh, cases_of_every_size(mesh, crowded), crowded);
    }
  }
};
TYPED_TEST_SUITE(CollectiveSizes, Teams);

TYPED_TEST(CollectiveSizes, AgreeWithTheOracle) { this->expect_all_conform(false); }

TYPED_TEST(CollectiveSizes, AgreeWithTheOracleWhereChipsShareCores) {
  this->expect_all_conform(true);
}

/// With three chips, parts begin in the middle of a cache line.
TYPED_TEST(CollectiveSizes, AgreeWithTheOracleBesideTheCaches) {
  const Mesh mesh = reversed_mesh({3});
  const AtomList atoms = mesh.axis_atoms(0);
  for (const CollectiveKind kind : kDataKinds) {
    if (kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter) continue;
    const std::int64_t last = last_count_in_caches(kind, DType::i64, atoms, mesh.size());
    std::vector<CollectiveCase> cases;
    for (const std::int64_t count : {last, last + 1}) {
      cases.push_back(make_row_case(kind, DType::i64, atoms, mesh.size(), count, cases.size()));
      solve(cases.back(), mesh);
    }
    expect_conforms<TypeParam>(mesh, cases);
  }
}

}  // namespace
}  // namespace weft::testing::collective_sizes_test
