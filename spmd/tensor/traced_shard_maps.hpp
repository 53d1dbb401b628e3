#pragma once
/// TracedShardMaps: the functions of shard_map() (weft/sharding.hpp) in a trace. Only the files of
/// this folder use it.

#include <source_location>
#include <span>
#include <vector>

#include "spmd/ops/builder.hpp"

namespace weft {

/// The functions of shard_map() that are being recorded.
class TracedShardMaps {
 public:
  struct Open {
    AtomMask manual;  ///< also those of the enclosing functions
    OpId begin;
    std::source_location loc;  ///< the user's call
  };
  /// A call of grad() in such a function.
  struct GradientCall {
    OpId begin, end;
    AtomMask varies;  ///< atoms over which the loss varies
    std::source_location loc;
  };
  void begin(const Open& function) { open_.push_back(function); }
  /// Ends the innermost function; does nothing if the trace has begun a new program.
  void end() {
    if (!open_.empty()) open_.pop_back();
    if (open_.empty()) gradients_.clear();
  }
  void note(const GradientCall& call) {
    if (!open_.empty()) gradients_.push_back(call);
  }
  /// Returns the call of grad() that made the value. If the value is a linear function of
  /// gradients, returns the call that made all of them. Returns null if there is no such call.
  const GradientCall* gradient_call(const Program& program, ValueId value) const;
  /// Returns the functions that are being recorded, the outermost first.
  std::span<const Open> open() const { return open_; }
  void clear() {
    open_.clear();
    gradients_.clear();
  }
  AtomMask manual() const { return open_.empty() ? AtomMask{0} : open_.back().manual; }
  /// Throws invalid_argument if the value was made in a function that has ended.
  void expect_inside(Builder& builder, ValueId value, const std::source_location& loc) const;

 private:
  std::vector<Open> open_;
  std::vector<GradientCall> gradients_;
};

}  // namespace weft
