#pragma once
/// WorkerRuntimeOptions: what a WorkerRuntime must know of its worker and job. LoopObserver: is
/// told of events in the loop.

#include <cstdint>
#include <memory>
#include <string>

#include "actors/runtime/data_hashes.hpp"
#include "spmd/target/target.hpp"
#include "spmd/tensor/runtime.hpp"
#include "spmd/tensor/tensor_source.hpp"
#include "transport/resume/resumed_state.hpp"
#include "transport/state/kept_state.hpp"

namespace weft {

struct WorkerRuntimeOptions {
  Target target;  ///< the target of the worker's chips
  int worker = 0;
  std::string run_dir{};  ///< folder where programs are listed; "": none
  bool has_mesh = true;   ///< false: the loop sees no mesh, and workers' programs may differ
  std::string dump_dir;   ///< from WEFT_DUMP_TO; "" for none
  std::string plan_dir;   ///< from WEFT_COMPILE_CACHE; "" for none
  int debug = 0;          ///< from WEFT_DEBUG
  std::uint64_t generation = 1;
  /// If this loop continues an interrupted loop, the number of steps that were kept; else 0.
  std::uint64_t resume_step = 0;
  bool keeps_state = true;  ///< state is kept in two versions, so that a later loop can continue
  StateSource state_source = StateSource::host;  ///< where the state after `resume_step` steps is
  /// The state after `resume_step` steps if it is in a checkpoint, else null.
  std::shared_ptr<ResumedState> resume_from{};
  std::uint64_t check_replicas_every = 0;  ///< in steps; 0: never
  DataChecks check_data = DataChecks::never;
  bool detect_anomaly = false;  ///< from WEFT_DETECT_ANOMALY
  /// From WEFT_PLAN_TO: the folder to which the plan of the first step is written. Then the step
  /// isn't run. "": none.
  std::string plan_folder{};
  int num_workers = 1;  ///< written with the plan of the first step
};

/// The loop's thread calls the functions.
class LoopObserver {
 public:
  virtual ~LoopObserver() = default;
  virtual void step_ended() = 0;  ///< called before the wait for the next step
  virtual void state_changes(const StateChange& /*change*/) {}  ///< called before the change
  /// Called before a program starts. The chips run `plan`.
  virtual void runs(const Program& /*plan*/) {}
  virtual void ran(const Program& /*program*/, const RunSite& /*site*/) {}  ///< after its start
};

}  // namespace weft
