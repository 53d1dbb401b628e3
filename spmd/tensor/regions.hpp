#pragma once
/// Regions: the parts of a trace whose values are computed again for the gradient, and its loops.
/// Users call checkpoint() (weft/transforms.hpp) and scan() (weft/control_flow.hpp).

#include <functional>
#include <map>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include <weft/transforms.hpp>

#include "spmd/passes/grad.hpp"

namespace weft {

class RematRegions {
 public:
  /// Begins a region at the next op. False within another region, which continues.
  bool begin(CheckpointOptions options, OpId next);
  /// Ends the region before the next op.
  void end(OpId next);
  void name(ValueId value, const std::string& name) { named_[name].push_back(value); }
  /// The regions that have ended, in order.
  std::span<const RematRegion> all() const { return regions_; }
  /// The trace begins anew, perhaps within a region; values already computed are kept then.
  void clear();

 private:
  struct Open {
    CheckpointOptions options;
    OpId begin;
  };
  std::optional<Open> open_;
  std::vector<RematRegion> regions_;
  std::map<std::string, std::vector<ValueId>, std::less<>> named_;
};

/// The loops of a trace: those that are being recorded, and those that are complete.
class TracedLoops {
 public:
  struct Open {
    ValueId number;  ///< the op `loop`
    OpId begin;
    std::int64_t length;
    std::source_location loc;  ///< of the user's call
  };
  void begin(const Open& loop) { open_.push_back(loop); }
  /// Ends the innermost loop before the next op.
  void end(OpId next);
  /// From the outermost to the innermost.
  std::span<const Open> open() const { return open_; }
  /// Throws invalid_argument if the value is of a loop that is complete.
  void expect_outside(const Program& program, ValueId value,
                      const std::source_location& loc) const {
    if (!complete_.empty()) refuse_inside(program, value, loc);
  }
  bool is_inside(const Program& program, ValueId value) const {
    return find(program, value) != nullptr;
  }
  void clear();

 private:
  struct Complete {
    ValueId number;
    OpId begin, end;
    std::source_location loc;
  };
  const Complete* find(const Program& program, ValueId value) const;
  void refuse_inside(const Program& program, ValueId value, const std::source_location& loc) const;

  std::vector<Open> open_;
  std::vector<Complete> complete_;
};

struct Regions {
  RematRegions remat;
  TracedLoops loops;

  void clear() {
    remat.clear();
    loops.clear();
  }
};

}  // namespace weft
