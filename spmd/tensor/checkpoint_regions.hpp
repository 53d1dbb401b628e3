#pragma once
/// CheckpointRegions: the parts of a trace that are to be computed again. For the files of this
/// folder; users see checkpoint.hpp.

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <weft/transforms.hpp>

#include "spmd/passes/grad.hpp"

namespace weft {

class CheckpointRegions {
 public:
  /// At the op that comes next. False within another region, which goes on.
  bool begin(CheckpointOptions options, OpId next);
  /// Before the op that comes next.
  void end(OpId next);
  void name(ValueId value, const std::string& name) { named_[name].push_back(value); }
  /// Those that have ended, in order.
  std::span<const RematRegion> all() const { return regions_; }
  /// The trace begins anew, perhaps in the middle of a region, whose values are kept then.
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

}  // namespace weft
