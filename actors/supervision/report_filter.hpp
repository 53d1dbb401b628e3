#pragma once
/// ReportFilter: lets every report of a run through once. A loop that goes on after a loss makes
/// some steps again, and the reports of those steps again. Pure, and of bounded size.

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
  /// The loops of `generation` begin at `step`, and load `checkpoint`; "": they load none.
  void begin_generation(std::uint64_t generation, std::uint64_t step,
                        const std::string& checkpoint = {});
  /// False for a report that an earlier generation has made. A report after the first step that its
  /// loop makes is recognised by its step and number. A report before that step is recognised by
  /// its metrics or its checkpoint; where the loop has loaded a reported checkpoint, the reports
  /// that follow are recognised by their numbers after the report of that checkpoint.
  bool is_new(const Report& report);
  /// The reports that have come, new or not.
  std::uint64_t count() const { return count_; }

 private:
  using Place = std::pair<std::uint64_t, std::uint32_t>;  ///< step, and number at that step
  struct Begin {
    std::uint64_t step = 0;
    /// The number of the loop's next report at `step`; nothing where it isn't known which reports
    /// of that step the loop makes again.
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

  std::optional<Place> last_;    ///< the latest place of a report so far
  std::deque<Known> greetings_;  ///< the first reports that loops made before their first steps
  std::deque<Known> recent_;     ///< the last ones of all others
  std::deque<Saved> saved_;
  /// By generation: a report from the log comes in a later generation than it was made in.
  std::map<std::uint64_t, Begin> begins_;
  std::uint64_t count_ = 0;
};

}  // namespace weft
