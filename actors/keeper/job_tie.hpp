#pragma once
/// JobTie: the job that a mesh of actors lives with.

#include <memory>
#include <string>

#include <weft/job/job.hpp>

namespace weft {

/// The facts about a job that its mesh keeps, so that the Job may be moved or destroyed.
struct JobTie {
  std::string id{};                     ///< "": none
  std::shared_ptr<const int> end_fd{};  ///< readable once the job has ended
};

/// Returns the tie to SpawnOptions::lives_with; null: none. Throws invalid_argument for an empty
/// Job, io.
JobTie tie_to(const Job* job);

}  // namespace weft
