#pragma once
/// Makes test cases of collectives, and runs them on the chips of a team.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <weft/sharding/mesh.hpp>

#include "tests/conformance/chip_team.hpp"
#include "tests/conformance/collective_oracle.hpp"
#include "transport/collectives/communicator.hpp"

namespace weft::testing {

/// A wait of a test that would never end fails after this time.
inline constexpr std::chrono::milliseconds kDeadline{60'000};

inline constexpr DType kDTypes[] = {DType::pred, DType::i32, DType::u32, DType::i64, DType::bf16,
                                    DType::f32,  DType::f64, DType::f16, DType::i8,  DType::u8};
/// All kinds except barrier.
inline constexpr CollectiveKind kDataKinds[] = {
    CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
    CollectiveKind::all_to_all, CollectiveKind::permute,    CollectiveKind::broadcast};

/// Returns a mesh whose device ids descend, so that a chip's number isn't its position.
Mesh reversed_mesh(std::vector<std::int64_t> shape);

/// Makes a case of this kind whose source has about `count` elements, if the kind leaves a choice.
/// The seed chooses all other properties.
CollectiveCase make_case(CollectiveKind kind, DType dtype, AtomList atoms, int n,
                         std::int64_t count, std::uint64_t seed);
/// Makes a "row case", in which the number of bytes is in proportion to `count`.
CollectiveCase make_row_case(CollectiveKind kind, DType dtype, AtomList atoms, int n,
                             std::int64_t count, std::uint64_t seed);
/// Return the greatest count at which a row case still uses mailboxes in the control lines, still
/// uses mailboxes of any kind, and still writes through the caches.
std::int64_t last_count_in_lines(CollectiveKind kind, DType dtype, AtomList atoms, int n);
std::int64_t last_count_in_mailboxes(CollectiveKind kind, DType dtype, AtomList atoms, int n,
                                     bool crowded);
std::int64_t last_count_in_caches(CollectiveKind kind, DType dtype, AtomList atoms, int n);

/// Limits of a random number of elements: usually the number is below `usual_max`, and in one of 16
/// cases it is below `rare_max`.
struct RandomSizes {
  std::uint64_t usual_max = 200;
  std::uint64_t rare_max = 6000;
};
/// Returns cases over random groups, which may be parts of axes, with their right results.
std::vector<CollectiveCase> random_cases(const Mesh& mesh, std::size_t count, std::uint64_t seed,
                                         const RandomSizes& sizes = {});

/// Returns the bytes of an arena that can hold each of the cases.
std::size_t capacity_for(const std::vector<CollectiveCase>& cases, const Mesh& mesh);

/// Call place_operand() before a case is run, and check_result() afterwards. check_result() throws
/// if the chip's result is wrong.
void place_operand(const CollectiveCase& which, int position, std::byte* arena);
void check_result(const CollectiveCase& which, const Mesh& mesh, int position,
                  const std::byte* arena);

/// Runs the cases one after another, each chip as fast as it can.
void run_cases(const std::vector<CollectiveCase>& cases, const Mesh& mesh, const TeamChip& chip,
               const WaitPolicy& policy);

template <typename Team>
void expect_conforms(const Mesh& mesh, const std::vector<CollectiveCase>& cases,
                     std::optional<bool> crowded = {}) {
  const Mesh tiered = Team::mesh_of(mesh);
  const WaitPolicy policy = WaitPolicy::for_threads(mesh.size(), kDeadline);
  const std::vector<std::string> failures = Team::run(
      tiered, capacity_for(cases, mesh),
      [&](const TeamChip& chip) { run_cases(cases, tiered, chip, policy); }, crowded);
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

}  // namespace weft::testing
