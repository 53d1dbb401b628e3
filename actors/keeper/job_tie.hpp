#pragma once
/// JobTie: the job that a mesh of actors lives with.

#include <memory>
#include <string>
#include <string_view>

#include <weft/actor/actor_options.hpp>

namespace weft {

/// The facts about a job that its mesh keeps, so that the Job may be moved or destroyed.
struct JobTie {
  std::string id{};                     ///< "": none
  int workers = 0;                      ///< processes in which its loops run; 0: in this process
  std::shared_ptr<const int> end_fd{};  ///< readable once the job has ended
};

/// Returns the tie to SpawnOptions::lives_with, or else to the job of beside_loops(). Throws
/// invalid_argument for an empty Job, for different jobs, and for a job whose workers don't join
/// the system; io.
JobTie tie_to(const SpawnOptions& options, std::string_view mesh, std::string_view system);

}  // namespace weft
