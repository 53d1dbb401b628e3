#pragma once
/// rescue(): makes a checkpoint of a job that has no living process, for `weft rescue`.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/format/run_card.hpp"

namespace weft {

struct Rescued {
  std::string path{};  ///< path of the checkpoint; "" if parts of other hosts are missing
  std::uint64_t step = 0;
  std::size_t num_tensors = 0;
  std::int64_t bytes = 0;         ///< size of all tensors
  bool is_of_other_host = false;  ///< whether another host has saved it; the sizes are then unknown
  std::vector<int> missing{};     ///< hosts whose parts are missing, if the state is divided
  std::string parts{};            ///< the folder with the parts, if the state is divided
};

/// The memory of a dead job of this user. If the job ran on several hosts, this is the memory of
/// one host.
struct DeadJob {
  std::string job{};        ///< the job's id, which is the same on all hosts
  std::string memory_id{};  ///< the id in its segments' names
  std::string root{};       ///< the control root with the job's lock and folder
  RunCard card{};
  std::uint64_t step = 0;  ///< newest step whose state all chips of this host have

  /// Returns whether all chips of the job have the state of a step that the job itself has made.
  bool has_steps() const { return step > card.begin_step; }
};

/// Returns the dead jobs that have steps to save (has_steps()), in order of jobs and hosts.
std::vector<DeadJob> list_dead_jobs();
/// Finds a dead job by the id of its memory or of the job. Throws not_found if the job has left no
/// state, unavailable if it isn't dead, and corrupt or version if its files or memory aren't valid.
DeadJob find_dead_job(std::string_view job);

/// Writes a checkpoint of the job's state after `dead.step` to `folder`; "" means the job's own
/// folder. The checkpoint contains only state that a run of the job has used. The memory of the job
/// remains. Also writes a note to the job's run folder (rescue_note.hpp).
///
/// If the job ran on several hosts and each host has all of the state, one host is enough: if
/// another host has saved a checkpoint already, returns that one. If each host stores its own
/// copies, also saves the earlier steps at which other hosts may have been. If the state is divided
/// over the hosts, each host writes its part to FOLDER/rescue-JOB. The host that finds all parts
/// there joins the parts of the last step that all hosts have. Waits up to `patience` for the other
/// hosts' parts.
///
/// Throws not_found if the job has no steps; invalid_argument if the folder has a checkpoint of
/// this step or a later one, or if the state is divided and hosts don't share the folder;
/// unavailable if another process rescues the job or writes to the folder; corrupt, and the errors
/// of writing.
Rescued rescue(const DeadJob& dead, const std::string& folder,
               std::chrono::milliseconds patience = {});

}  // namespace weft
