#pragma once
/// JobTie: the job that a mesh of actors lives with.

#include <memory>
#include <string>
#include <string_view>

#include <weft/actor/actor_options.hpp>

namespace weft {

/// A mesh's copy of the facts of its job. With it, the Job may be moved or destroyed.
struct JobTie {
  std::string id{};                     ///< "": there is no job
  int workers = 0;                      ///< number of processes that run its loops; 0: this process
                                        ///< runs them
  std::shared_ptr<const int> end_fd{};  ///< readable once the job has ended
};

/// Returns the tie to SpawnOptions::lives_with, or else to the job of beside_loops(). Throws
/// invalid_argument for an empty Job, for two different jobs, and for a job whose workers don't
/// join the system. Throws io.
JobTie tie_to(const SpawnOptions& options, std::string_view mesh, std::string_view system);

}  // namespace weft
