#pragma once
/// ReportFilter: passes every report of a run exactly once. A loop that continues after the loss of
/// a worker repeats some steps, and therefore their reports. It does no I/O, and its size is
/// bounded.

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
  /// Called when the loops of `generation` begin at `step`. `checkpoint` is the checkpoint that
  /// they load; "" means none.
  void begin_generation(std::uint64_t generation, std::uint64_t step,
                        const std::string& checkpoint = {});
  /// Returns false if an earlier generation has made the same report. Reports after a loop's first
  /// step are recognized by step and number. Reports before that step are recognized by their
  /// metrics or their checkpoint. After the loop has loaded a reported checkpoint, its reports
  /// before that step are numbered on from the checkpoint's report, and recognized by number.
  bool is_new(const Report& report);
  /// Returns the number of reports received, new or not.
  std::uint64_t count() const { return count_; }

 private:
  using Place = std::pair<std::uint64_t, std::uint32_t>;  ///< step, and number within that step
  struct Begin {
    std::uint64_t step = 0;
    /// The number of the loop's next report at `step`. Absent if it isn't known which reports of
    /// that step the loop repeats.
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

  std::optional<Place> last_;    ///< the step and number of the latest report
  std::deque<Known> greetings_;  ///< the first reports that loops made before their first steps
  std::deque<Known> recent_;     ///< the latest of all other reports
  std::deque<Saved> saved_;
  /// By generation; the last kBeginsMax are kept. Past generations are needed because reports that
  /// they made may still arrive from the log.
  std::map<std::uint64_t, Begin> begins_;
  std::uint64_t count_ = 0;
};

}  // namespace weft
