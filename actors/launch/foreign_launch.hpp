#pragma once
/// Handles programs that are started by `mpirun ./app` or `srun ./app` instead of `weft launch`.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <weft/job/config.hpp>

namespace weft {

/// The facts that another launcher gives about the processes it has started.
struct ForeignLaunch {
  std::string launcher;  ///< "Open MPI", "MPICH", "Slurm"
  int rank = 0;          ///< the rank of this process
  int size = 1;
};

/// Reads the variables of Open MPI (OMPI_COMM_WORLD_*), of MPICH's launcher and its relatives
/// (PMI_*, MPI_LOCALNRANKS) and of srun (SLURM_PROCID with SLURM_STEP_*). Returns nothing if there
/// is no such launcher or if WEFT_IGNORE_LAUNCHER is set. Also returns nothing if the launcher has
/// started only one process, because that process may have any number of workers. Throws
/// invalid_argument for a malformed variable, unavailable for processes on several hosts.
std::optional<ForeignLaunch> foreign_launch(
    const std::function<const char*(const char* name)>& variable);

/// Adapts a fit() with worker processes to a foreign launcher. The process of rank 0 runs the job
/// on all cores of the launcher, with as many workers as the launcher has started processes. The
/// other processes have nothing to do, so this function ends them with exit code 0. If num_workers
/// = 0, it does nothing, and each rank runs its own job.
void obey_foreign_launch(ScalingConfig& scaling);

/// Returns whether a launcher sets this variable to make a process one of several. Workers don't
/// get such variables.
bool is_of_foreign_launch(std::string_view name);

}  // namespace weft
