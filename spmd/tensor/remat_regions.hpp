#pragma once
/// RematRegions: the parts of a trace whose values are computed again for the gradient. Users call
/// checkpoint() (weft/transforms.hpp).

#include <functional>
#include <map>
#include <optional>
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

}  // namespace weft
