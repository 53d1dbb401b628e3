#pragma once
/// ReportFilter: lets every report of a run through once, though a loop that goes on after a loss
/// takes steps again and makes their reports again. Pure.

#include <cstdint>
#include <map>
#include <utility>

#include <weft/actors/protocol.hpp>

namespace weft {

class ReportFilter {
 public:
  /// The loops of `generation` begin at `step`.
  void begin_generation(std::uint64_t generation, std::uint64_t step);
  /// False for a report that was made before: in an earlier generation, at the same step, the same
  /// number; or, of what the loop reports before the first step that it takes, with the same
  /// metrics.
  bool is_new(const Report& report);
  /// Reports that came, new or not.
  std::uint64_t count() const { return count_; }

 private:
  struct Seen {
    std::uint64_t generation = 0;
    std::uint64_t digest = 0;
  };
  std::map<std::pair<std::uint64_t, std::uint32_t>, Seen> seen_;  // by step and number
  /// By generation: a report may come in a later one than it was made in, out of the log.
  std::map<std::uint64_t, std::uint64_t> first_steps_;
  std::uint64_t count_ = 0;
};

}  // namespace weft
