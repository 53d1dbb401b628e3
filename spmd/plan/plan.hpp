#pragma once
/// Plan: what one chip runs: a per-chip program, the steps in which it runs, and a place in memory
/// for every value.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <weft/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// Values are stable: they are written to files.
enum class Place : std::uint8_t {
  temp = 0,    ///< at `offset` in the temporaries' region, the same on every chip
  input = 1,   ///< in the buffer bound to input number `offset` for this run
  output = 2,  ///< in the buffer bound to output number `offset` for this run
  shared = 3,  ///< once for a group of chips: at `offset` in the shared region of its first chip
  tile = 4,    ///< never whole in memory: in a buffer of each loop that makes or reads it
};

struct Slot {
  Place place = Place::temp;
  std::uint64_t offset = 0;
};

/// Values are stable: they are written to files.
enum class StepKind : std::uint8_t {
  compute = 0,      ///< op `first`
  loop = 1,         ///< the elementwise ops of `first` .. `first + count - 1`, tile by tile
  collective = 2,   ///< op `first`; of `count` > 1, a bucket: these all_reduces as one
  barrier = 3,      ///< all chips of the mesh meet: none of them reads a shared value any more
  update_wait = 4,  ///< until every chip has committed the last step; then held outputs are placed
};
/// "loop".
std::string_view to_string(StepKind kind) noexcept;

/// A plan's steps run one after another.
struct PlanStep {
  StepKind kind = StepKind::compute;
  OpId first = 0;
  std::uint32_t count = 1;  ///< ops; 0 of a barrier and of an update_wait

  OpId end() const { return first + count; }
  friend bool operator==(const PlanStep&, const PlanStep&) = default;
};

/// Where a loop has a value that has no place in memory: in a buffer of one tile of its elements.
/// Buffers are numbered from 0 in each loop.
struct TileBuffer {
  std::uint32_t step = 0;  ///< the loop
  ValueId value = 0;
  std::uint32_t buffer = 0;

  friend bool operator==(const TileBuffer&, const TileBuffer&) = default;
};

/// Most bytes of the outputs that a plan holds back until its update_wait: more is not worth the
/// copy.
inline constexpr std::int64_t kHeldBytesMax = 4096;

/// The same bytes for all chips. Operands and results of collectives are temporaries, so their
/// offsets are equal on all chips (make_plan inserts `copy` where an input or output takes part);
/// the result of an all_gather may be shared instead.
struct Plan {
  Program program;                       ///< the chip's program
  std::vector<TensorType> input_types;   ///< global
  std::vector<TensorType> output_types;  ///< global
  std::vector<Slot> slots;               ///< one per value
  std::uint64_t temp_bytes = 0;          ///< size of the temporaries' region, 64-byte aligned
  std::uint64_t temp_bytes_bound = 0;    ///< lower bound: largest sum of values live at once
  std::uint64_t shared_bytes = 0;        ///< size of the region of shared values

  std::vector<PlanStep> steps;    ///< what the chip does, in order (schedule.hpp)
  std::vector<TileBuffer> tiles;  ///< of all loops, by step
  /// Outputs, by number, that steps before the update_wait make: they lie in memory of the chip's
  /// own until it, since other chips may still need the version that they replace.
  std::vector<std::uint32_t> held;
  /// By output: whether it may be written over the input that it updates (donate.hpp).
  std::vector<bool> donated;

  std::vector<std::int64_t> mesh_shape;
  std::vector<std::string> axis_names;
};

struct PlanOptions {
  /// The result of an all_gather is shared from this size on: every chip stores its part once,
  /// instead of once for each chip. For less it doesn't pay to keep it until all have met again.
  std::int64_t shared_bytes_min = 65536;
};

/// Inserts copies, drops barriers, brings all_reduces together (fill_buckets), divides the program
/// into steps (schedule), and places every value but those of loops (greedy by size, first fit
/// among overlapping intervals; each 64-byte aligned). A value lives from its op, constants too, to
/// the last op that reads it (some longer: lifetime.hpp); an op's result never shares bytes with
/// its operands. An output is written where it is computed; a value that is output twice, or both
/// input and output, gets a copy.
Plan make_plan(const Program& chip_program, const Mesh& mesh,
               std::span<const TensorType> input_types, std::span<const TensorType> output_types,
               const PlanOptions& options = {});

/// Throws corrupt, naming the value, op or step, for a plan that would not compute its program: one
/// for another mesh, whose inputs or outputs aren't shards of their global types, whose steps leave
/// ops out or run them in another order, or where two values that live at once overlap.
/// plan_verify.cpp and steps_verify.cpp have all that is checked.
void verify(const Plan& plan, const Mesh& mesh);

/// One collective of a plan, for people and for tests; a bucket is one.
struct CollectiveSummary {
  OpKind kind;
  std::vector<std::string> axes;
  std::int64_t bytes = 0;  ///< of the chip's operand (all_gather: of its result)
  std::string value;       ///< "dot_general at digits.cpp:41", "dot_general at .. and 3 more"
};
/// In the order of the steps.
std::vector<CollectiveSummary> collectives(const Plan& plan, const Mesh& mesh);

/// Called with each pass's name and what it gave, as text.
using PassObserver = std::function<void(std::string_view pass, const std::string& text)>;

/// canonicalize, pad_uneven, propagate (with expand, as long as there is something to), partition,
/// canonicalize, make_plan; what pad_uneven and expand change is canonicalized again, and every
/// program on the way is verified.
Plan compile(const Program& program, const Mesh& mesh, const PlanOptions& options = {},
             const PassObserver& observer = {});

}  // namespace weft
