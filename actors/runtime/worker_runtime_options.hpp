#pragma once
/// WorkerRuntimeOptions: what a WorkerRuntime is told of its worker and its job. LoopObserver: whom
/// it tells of the loop.

#include <cstdint>
#include <memory>
#include <string>

#include "actors/runtime/data_hashes.hpp"
#include "spmd/tensor/runtime.hpp"
#include "spmd/tensor/tensor_source.hpp"
#include "transport/resume/resumed_state.hpp"

namespace weft {

struct WorkerRuntimeOptions {
  int worker = 0;
  std::string run_dir{};  ///< in which programs are listed; "" for none
  bool has_mesh = true;   ///< false: the loop sees no mesh, and each worker has its own programs
  std::string dump_dir;   ///< from WEFT_DUMP_TO; "" for none
  std::string plan_dir;   ///< from WEFT_COMPILE_CACHE; "" for none
  int debug = 0;          ///< from WEFT_DEBUG
  std::uint64_t generation = 1;
  /// Steps after which the loop was interrupted that this one continues; 0: none was.
  std::uint64_t resume_step = 0;
  bool keeps_state = true;  ///< two versions, for a later loop that continues this one
  /// The state after `resume_step` steps, in a checkpoint; null: on the chips, or nowhere.
  std::shared_ptr<ResumedState> resume_from{};
  std::uint64_t check_replicas_every = 0;  ///< steps; 0: never
  DataChecks check_data = DataChecks::never;
  bool detect_anomaly = false;  ///< from WEFT_DETECT_ANOMALY
  /// From WEFT_PLAN_TO: the plan of the first step goes there, and isn't run.
  std::string plan_folder{};
  int num_workers = 1;  ///< for that
};

/// Called on the loop's thread.
class LoopObserver {
 public:
  virtual ~LoopObserver() = default;
  virtual void step_ended() = 0;  ///< before the next step is waited for
  virtual void state_changes(const StateChange& change) = 0;          ///< before the change is made
  virtual void ran(const Program& program, const RunSite& site) = 0;  ///< once it was started
};

}  // namespace weft
