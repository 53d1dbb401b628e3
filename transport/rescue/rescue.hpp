#pragma once
/// Makes a checkpoint of a job of which no process lives any more: `weft rescue`.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct Rescued {
  std::string path{};  ///< of the checkpoint
  std::uint64_t step = 0;
  std::size_t num_tensors = 0;
  std::int64_t bytes = 0;  ///< of all tensors
};

/// A dead job of this user, whose memory is still there.
struct Rescuable {
  std::string job{};
  std::string root{};         ///< with its lock and its folder
  std::string checkpoints{};  ///< its folder of checkpoints
  int fit_number = 1;         ///< among the jobs of its process
  std::uint64_t step = 0;     ///< the newest step that all its chips have
};

/// All that there are.
std::vector<Rescuable> list_rescuable();
/// Throws not_found if there is nothing to rescue of the job, unavailable if it isn't dead, corrupt
/// or version if what it left isn't valid.
Rescuable find_rescuable(std::string_view job);

/// Writes the state that the job's chips have of this step as a checkpoint to `folder`; "" for the
/// job's own folder. It has what the job's runs had used. The job's memory stays. Throws as
/// find_rescuable(), invalid_argument if the folder has a checkpoint of this step or a later one,
/// and what writing throws.
Rescued rescue(const Rescuable& dead, const std::string& folder);

}  // namespace weft
