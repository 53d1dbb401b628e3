#pragma once
/// TracedShardMaps: the functions of shard_map() (weft/shard_map.hpp) in a trace. For the files of
/// this folder.

#include <source_location>
#include <span>
#include <vector>

#include "spmd/ops/builder.hpp"

namespace weft {

/// The functions of shard_map() that are being recorded.
class TracedShardMaps {
 public:
  struct Open {
    AtomMask manual;  ///< with those of the functions around it
    OpId begin;
    std::source_location loc;  ///< of the user's call
  };
  /// A call of grad() in a function.
  struct GradientCall {
    OpId begin, end;
    AtomMask varies;  ///< of the loss
    std::source_location loc;
  };
  void begin(const Open& function) { open_.push_back(function); }
  /// Ends the innermost function; nothing if the trace has begun anew.
  void end() {
    if (!open_.empty()) open_.pop_back();
    if (open_.empty()) gradients_.clear();
  }
  void note(const GradientCall& call) {
    if (!open_.empty()) gradients_.push_back(call);
  }
  /// The call that made the value, or all gradients that it is a linear function of; null if there
  /// is none.
  const GradientCall* gradient_call(const Program& program, ValueId value) const;
  /// From the outermost to the innermost.
  std::span<const Open> open() const { return open_; }
  void clear() {
    open_.clear();
    gradients_.clear();
  }
  AtomMask manual() const { return open_.empty() ? AtomMask{0} : open_.back().manual; }
  /// Throws invalid_argument if the value is of a function that has ended.
  void expect_inside(Builder& builder, ValueId value, const std::source_location& loc) const;

 private:
  std::vector<Open> open_;
  std::vector<GradientCall> gradients_;
};

}  // namespace weft
