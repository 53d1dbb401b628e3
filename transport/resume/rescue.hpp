#pragma once
/// Makes a checkpoint of a job that has no living process: `weft rescue`.

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
  std::string root{};  ///< the root that has its lock and its folder
  RunCard card{};
  std::uint64_t step = 0;  ///< the newest step that all its chips have

  /// Whether its chips have made at least one step that all of them have.
  bool has_steps() const { return step > card.begin_step; }
};

/// Returns the dead jobs that have steps.
std::vector<DeadJob> list_dead_jobs();
/// Throws not_found if the job has left no state, unavailable if it isn't dead, corrupt or version
/// if its files or memory aren't valid.
DeadJob find_dead_job(std::string_view job);

/// Writes the state that the job's chips have of its step as a checkpoint to `folder`; "" means the
/// job's own folder. The checkpoint has the state that the job's runs had used. The job's memory
/// stays. Throws not_found if the job has no steps, invalid_argument if the folder has a checkpoint
/// of this step or a later one, unavailable if another process rescues the job, corrupt, and the
/// errors of writing. The rescue is noted in the job's run folder (rescue_note.hpp).
Rescued rescue(const DeadJob& dead, const std::string& folder);

}  // namespace weft
