#pragma once
/// Plan: the program of one chip, the steps that run it, and a place in memory for every value.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/program/program.hpp"
#include "spmd/target/target.hpp"

namespace weft {

/// The place of a value. The numbers are stable, because they are written to files.
enum class Place : std::uint8_t {
  temp = 0,    ///< at `offset` in the region of temporaries; the same on every chip
  input = 1,   ///< in the buffer bound to input number `offset` for this run
  output = 2,  ///< in the buffer bound to output number `offset` for this run
  shared = 3,  ///< one copy for a group of chips, at `offset` in its first chip's shared region
  /// The value is never in memory as a whole: each loop that uses it keeps one tile at a time in a
  /// buffer.
  tile = 4,
  part = 5,  ///< the chip's part of the shared value number `offset`, the result of an all_gather
};

struct Slot {
  Place place = Place::temp;
  std::uint64_t offset = 0;
};

/// The numbers of the kinds are stable, because they are written to files.
enum class StepKind : std::uint8_t {
  compute = 0,     ///< runs the op `first`
  loop = 1,        ///< runs the elementwise ops in `first` .. `first + count - 1`, tile by tile
  collective = 2,  ///< runs op `first`, or a bucket of `count` all_reduces together
  barrier = 3,     ///< waits for all chips of the host; then no chip reads shared values anymore
  /// Waits until all chips have committed this step, then copies `held` outputs to their buffers.
  update_wait = 4,
  begin = 5,   ///< runs the loop op `first` and the carries after it, once
  repeat = 6,  ///< ends an iteration of loop op `first`: jumps to the step after `begin`
  test = 7,    ///< runs the `test` op `first`; if false, jumps behind the loop's `repeat`
  /// Runs op `first`, a `cond` or `otherwise`. If its result is false, skips the branch that
  /// follows: a `cond` jumps to its `otherwise`, and an `otherwise` jumps behind its `join`.
  branch = 8,
  join = 9,   ///< ends the second branch; `first` is the op `otherwise` that begins the branch
  wait = 10,  ///< waits until the collective whose first op is `first` has ended (overlap.hpp)
};
/// Returns a name such as "loop".
std::string_view to_string(StepKind kind) noexcept;

/// A step of a plan. The steps run one after another.
struct PlanStep {
  StepKind kind = StepKind::compute;
  OpId first = 0;
  std::uint32_t count = 1;  ///< number of ops that the step runs; may be 0

  OpId end() const { return first + count; }
  friend bool operator==(const PlanStep&, const PlanStep&) = default;
};

/// The buffer in which a loop keeps one tile of a value of Place::tile. Each loop numbers its
/// buffers from 0.
struct TileBuffer {
  std::uint32_t step = 0;  ///< index of the loop's step
  ValueId value = 0;
  std::uint32_t buffer = 0;

  friend bool operator==(const TileBuffer&, const TileBuffer&) = default;
};

/// At most this many bytes of outputs are held until the update_wait, because copying takes time.
inline constexpr std::int64_t kHeldBytesMax = 4096;

/// A plan is identical for all chips. Operands and results of collectives are temporaries, so their
/// offsets are equal on all chips; make_plan inserts a `copy` where they are inputs or outputs.
/// There are two exceptions (shared.hpp): the result of an all_gather may be shared, and its
/// operand a part of it; the result of a reduce_scatter may be a tile.
struct Plan {
  Program program;                       ///< the chip's program
  std::vector<TensorType> input_types;   ///< global types
  std::vector<TensorType> output_types;  ///< global types
  std::vector<Slot> slots;               ///< one per value
  std::uint64_t temp_bytes = 0;          ///< size of the temporaries' region, 64-byte aligned
  std::uint64_t temp_bytes_bound = 0;    ///< lower bound of temp_bytes: most bytes live at one op
  std::uint64_t shared_bytes = 0;        ///< size of the region of shared values

  std::vector<PlanStep> steps;    ///< the work of the chip, in order (schedule.hpp)
  std::vector<TileBuffer> tiles;  ///< the tiles of all loops, in the order of their steps
  /// Numbers of the outputs that update an input and are written before the update_wait. They stay
  /// in the chip's own memory until the update_wait, because other chips may still need the
  /// previous values of the inputs.
  std::vector<std::uint32_t> held;
  /// Indexed by output: whether it may overwrite the input that it updates (donate.hpp).
  std::vector<bool> donated;

  std::vector<std::int64_t> mesh_shape;
  std::vector<std::string> axis_names;
  std::vector<std::int64_t> dcn_shape;  ///< hosts per axis (HybridMesh::dcn); empty: one host
};

/// Returns the mesh for which the plan is made, with these device ids (default 0, 1, 2, ...).
Mesh mesh_of(const Plan& plan, std::vector<int> device_ids = {});
/// Returns the plan's mesh with the device ids of `chips`, the mesh of the chips that run the plan.
/// Several hosts of the plan may run on one host. Throws mesh_mismatch if the meshes don't fit.
Mesh mesh_on(const Plan& plan, const Mesh& chips);

/// Inserts copies, drops optimization_barriers, puts ops in order (overlap_order.hpp), groups
/// all_reduces (bucket.hpp), divides the program into steps (schedule.hpp), and places every value
/// in memory (greedy by size, first fit, 64-byte aligned; lifetime.hpp). An op's result and
/// operands share no bytes. An op writes an output straight to its buffer; a `copy` does so if the
/// value is output twice, is an input too, or an operand or result of a collective.
Plan make_plan(const Program& chip_program, const Mesh& mesh,
               std::span<const TensorType> input_types, std::span<const TensorType> output_types,
               const Target& target);

/// Throws corrupt, with the value, op or step, if the plan would not compute its program: if, say,
/// it is for another mesh, a collective spans both tiers, the steps omit ops, or values overlap
/// while both are live. The checks are in the files *_verify.cpp.
void verify(const Plan& plan, const Mesh& mesh);

/// One collective of a plan, for display and for tests. A bucket counts as one collective.
struct CollectiveSummary {
  OpKind kind;
  std::vector<std::string> axes;
  std::int64_t bytes = 0;  ///< the bytes of the chip's operands (all_gather: of its result)
  std::string value;       ///< origin of the operand, such as "dot_general at digits.cpp:41"
  AtomMask atoms = 0;      ///< the atoms over which its groups of chips extend
  Tier tier = Tier::ici;
  std::int64_t dcn_bytes = 0;  ///< the bytes that each host sends to other hosts
  std::size_t start = 0;       ///< index of its step
  std::size_t end = 0;         ///< index of its wait, or of its step
};
/// Returns the collectives in the order of the steps.
std::vector<CollectiveSummary> collectives(const Plan& plan, const Mesh& mesh);

/// A function that is called with each pass's name and its result as text.
using PassObserver = std::function<void(std::string_view pass, const std::string& text)>;

/// Runs these passes: canonicalize, pad_uneven, propagate, shard_optimizer_state, partition,
/// lower_tiers, canonicalize, channels_last (if the target has features last), recompute_in_loops
/// and make_plan. After propagate and shard_optimizer_state, runs expand and propagate until expand
/// finds no more composites. Verifies every intermediate program, and the plan.
Plan compile(const Program& program, const Mesh& mesh, const Target& target,
             const PassObserver& observer = {});

}  // namespace weft
