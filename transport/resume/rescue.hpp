#pragma once
/// rescue(): makes a checkpoint of a job that has no living process, for `weft rescue`.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/format/run_card.hpp"

namespace weft {

struct Rescued {
  std::string path{};  ///< path of the checkpoint
  std::uint64_t step = 0;
  std::size_t num_tensors = 0;
  std::int64_t bytes = 0;  ///< size of all tensors
};

/// A dead job of this user whose memory still exists.
struct DeadJob {
  std::string job{};
  std::string root{};  ///< control root with the job's lock and folder
  RunCard card{};
  std::uint64_t step = 0;  ///< newest step whose state all of the job's chips have

  /// Returns whether the job's chips all have the state of a step that the job itself has made.
  bool has_steps() const { return step > card.begin_step; }
};

/// Returns the dead jobs for which has_steps() is true.
std::vector<DeadJob> list_dead_jobs();
/// Finds a dead job. Throws not_found if the job has left no state, unavailable if it isn't dead,
/// and corrupt or version if its files or memory aren't valid.
DeadJob find_dead_job(std::string_view job);

/// Writes a checkpoint of the job's state after `dead.step` to `folder`; "" means the job's own
/// folder. The checkpoint has only state that a run of the job has used. The memory of the job
/// remains. Throws not_found if the job has no steps, invalid_argument if the folder has a
/// checkpoint of this step or a later one, unavailable if another process rescues the job, corrupt,
/// and the errors of writing. Also writes a note to the job's run folder (rescue_note.hpp).
Rescued rescue(const DeadJob& dead, const std::string& folder);

}  // namespace weft
