#pragma once
/// ReportFilter: lets every report of a run through once, though a loop that goes on after a loss
/// takes steps again and makes their reports again. Pure, and of bounded size.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "actors/protocol/protocol.hpp"

namespace weft {

class ReportFilter {
 public:
  /// The loops of `generation` begin at `step`; `checkpoint`: with what they load, "" for nothing.
  void begin_generation(std::uint64_t generation, std::uint64_t step,
                        const std::string& checkpoint = {});
  /// False for a report that was made before: by an earlier generation, at the same step or a later
  /// one. What a loop reports before the first step that it takes is known by its metrics, or by
  /// its checkpoint, or, where the loop goes on behind a checkpoint's report, by its place after
  /// that.
  bool is_new(const Report& report);
  /// Reports that came, new or not.
  std::uint64_t count() const { return count_; }

 private:
  using Place = std::pair<std::uint64_t, std::uint32_t>;  ///< step, and number at that step
  struct Begin {
    std::uint64_t step = 0;
    /// The number of its next report at that step, where it is known what came before.
    std::optional<std::uint32_t> next;
  };
  struct Known {
    std::uint64_t generation = 0;
    std::uint64_t digest = 0;
    Place place;
  };
  struct Saved {
    std::uint64_t generation = 0;
    std::string path;
    Place place;
  };
  Begin* first_step_of(const Report& report);
  bool is_known(const Report& report, std::uint64_t digest, Begin& begin) const;
  void remember(const Report& report, std::uint64_t digest, const Place& place, bool at_begin);

  std::optional<Place> last_;    ///< of all that came
  std::deque<Known> greetings_;  ///< what loops reported before their first steps; the first ones
  std::deque<Known> recent_;
  std::deque<Saved> saved_;
  /// By generation: a report may come in a later one than it was made in, out of the log.
  std::map<std::uint64_t, Begin> begins_;
  std::uint64_t count_ = 0;
};

}  // namespace weft
