#pragma once
/// Regions: the parts of a trace that its ops don't describe: loops, branches, functions of
/// shard_map, and regions that are computed again for the gradient. Users call checkpoint()
/// (weft/nn.hpp), scan(), while_loop(), cond() (weft/ops.hpp) and shard_map() (weft/sharding.hpp).

#include <functional>
#include <map>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weft/nn/transforms.hpp>
#include <weft/ops/custom_op.hpp>

#include "spmd/grad/grad.hpp"
#include "spmd/tensor/traced_shard_maps.hpp"

namespace weft {

struct RunSite;
struct TensorNode;
struct TraceSite;

/// The new numbers of a program's values and ops after append_ops().
struct Appended {
  std::vector<ValueId> values;  ///< kNoId: the value wasn't appended
  std::vector<OpId> places;
};

class RematRegions {
 public:
  /// Begins a region at the next op. Returns false within another region, which then continues.
  bool begin(CheckpointOptions options, OpId next);
  /// Ends the region before the next op.
  void end(OpId next);
  void name(ValueId value, const std::string& name) { named_[name].push_back(value); }
  /// Returns the regions that have ended, in order.
  std::span<const RematRegion> all() const { return regions_; }
  /// Drops all regions, when the trace begins a new program. A region that hasn't ended yet ends:
  /// the values that it has computed are stored.
  void clear();
  void append(const RematRegions& from, const Appended& appended);

 private:
  struct Open {
    CheckpointOptions options;
    OpId begin;
  };
  std::optional<Open> open_;
  std::vector<RematRegion> regions_;
  std::map<std::string, std::vector<ValueId>, std::less<>> named_;
};

/// The kinds of functions that are recorded once, but may run several times or never.
enum class TracedKind : std::uint8_t { scan, while_loop, cond };
/// Returns a name such as "scan".
std::string_view to_string(TracedKind kind) noexcept;

/// The loops and branches of a trace that are being recorded, and those that are complete.
class TracedLoops {
 public:
  struct Open {
    ValueId number;  ///< the result of the op `loop` or `cond`
    OpId begin;
    std::int64_t length;       ///< number of iterations of a scan
    std::source_location loc;  ///< the user's call
    TracedKind kind = TracedKind::scan;
  };
  void begin(const Open& loop) { open_.push_back(loop); }
  /// Ends the innermost loop or branch before the next op.
  void end(OpId next);
  /// Returns the loops and branches that are being recorded, the outermost first.
  std::span<const Open> open() const { return open_; }
  /// Throws invalid_argument if the value belongs to a loop or branch that is complete.
  void expect_outside(const Program& program, ValueId value,
                      const std::source_location& loc) const {
    if (!complete_.empty()) refuse_inside(program, value, loc);
  }
  bool is_inside(const Program& program, ValueId value) const {
    return find(program, value) != nullptr;
  }
  void clear();
  /// Adds the complete loops and branches of `from`.
  void append(const TracedLoops& from, const Appended& appended);

 private:
  struct Complete {
    ValueId number;
    OpId begin, end;
    std::source_location loc;
    TracedKind kind;
  };
  const Complete* find(const Program& program, ValueId value) const;
  void refuse_inside(const Program& program, ValueId value, const std::source_location& loc) const;

  std::vector<Open> open_;
  std::vector<Complete> complete_;
};

/// A trace's records about parts of its program, in addition to the ops.
struct Regions {
  /// The functions of custom_vjp(). The key is the number that their ops have as an attribute. It
  /// is unique in a step, because ops that are recorded again are in one program with newer ops.
  std::map<std::int64_t, CustomGradient> custom_gradients;
  std::int64_t custom_gradient_count = 0;  ///< number of calls in this step
  RematRegions remat;
  TracedLoops loops;
  TracedShardMaps shard_maps;

  /// Throws invalid_argument if a loop or a shard_map is being recorded and the tensor was made
  /// outside of it.
  void expect_assignable(const Program& program, const TensorNode& node,
                         const TraceSite& site) const;
  void append(const Regions& from, const Appended& appended) {
    custom_gradients.insert(from.custom_gradients.begin(), from.custom_gradients.end());
    remat.append(from.remat, appended);
    loops.append(from.loops, appended);
  }
  /// Throws invalid_argument if a loop or a shard_map is being recorded.
  void expect_readable(const RunSite& site) const;
  void clear() {
    custom_gradients.clear();
    remat.clear();
    loops.clear();
    shard_maps.clear();
  }
};

}  // namespace weft
