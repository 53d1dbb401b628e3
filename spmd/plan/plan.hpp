#pragma once
/// Plan: what one chip runs: a per-chip program with a place in memory for every value.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <weft/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft {

enum class Place : std::uint8_t {
  temp,    ///< at `offset` in the temporaries' region, the same on every chip
  input,   ///< in the buffer bound to input number `offset` for this run
  output,  ///< in the buffer bound to output number `offset` for this run
  shared,  ///< once for a group of chips: at `offset` in the shared region of its first chip
  tile,    ///< never whole in memory: in the loops that make and read it (fuse.hpp)
};

struct Slot {
  Place place = Place::temp;
  std::uint64_t offset = 0;
};

/// The same bytes for all chips. Operands and results of collectives are temporaries, so their
/// offsets are equal on all chips (make_plan inserts `copy` where an input or output takes part);
/// the result of an all_gather may be shared instead.
struct Plan {
  Program program;                       ///< the chip's program; ops in the order in which they run
  std::vector<TensorType> input_types;   ///< global
  std::vector<TensorType> output_types;  ///< global
  std::vector<Slot> slots;               ///< one per value
  std::uint64_t temp_bytes = 0;          ///< size of the temporaries' region, 64-byte aligned
  std::uint64_t temp_bytes_bound = 0;    ///< lower bound: largest sum of values live at once
  std::uint64_t shared_bytes = 0;        ///< size of the region of shared values

  std::vector<std::int64_t> mesh_shape;
  std::vector<std::string> axis_names;
};

struct PlanOptions {
  /// The result of an all_gather is shared from this size on: every chip stores its part once,
  /// instead of once for each chip. For less it doesn't pay to keep it until all have met again.
  std::int64_t shared_bytes_min = 65536;
};

/// Inserts copies, drops barriers, brings all_reduces together (fill_buckets), and places every
/// value but those of loops (greedy by size, first fit among overlapping intervals; each 64-byte
/// aligned). A value lives from its op, constants too, to the last op that reads it (some longer:
/// lifetime.hpp); an op's result never shares bytes with its operands. An output is written where
/// it is computed; a value that is output twice, or both input and output, gets a copy.
Plan make_plan(const Program& chip_program, const Mesh& mesh,
               std::span<const TensorType> input_types, std::span<const TensorType> output_types,
               const PlanOptions& options = {});

/// Throws corrupt if the plan is for another mesh, an input or output on a chip isn't a shard of
/// its global type, two values that live at once overlap, a slot leaves its region or isn't
/// aligned, what isn't of a loop has no slot, a bucket isn't one range, or a collective touches
/// anything but temporaries and, as an all_gather's result, shared values.
void verify(const Plan& plan, const Mesh& mesh);

/// One collective of a plan, for people and for tests; a bucket (bucket.hpp) is one.
struct CollectiveSummary {
  OpKind kind;
  std::vector<std::string> axes;
  std::int64_t bytes = 0;  ///< of the chip's operand (all_gather: of its result)
  std::string value;       ///< "dot_general at digits.cpp:41", "dot_general at .. and 3 more"
};
std::vector<CollectiveSummary> collectives(const Plan& plan, const Mesh& mesh);

/// Called with each pass's name and what it gave, as text.
using PassObserver = std::function<void(std::string_view pass, const std::string& text)>;

/// canonicalize, pad_uneven, propagate (with expand, as long as there is something to), partition,
/// canonicalize, make_plan; what pad_uneven and expand change is canonicalized again, and every
/// program on the way is verified.
Plan compile(const Program& program, const Mesh& mesh, const PlanOptions& options = {},
             const PassObserver& observer = {});

}  // namespace weft
