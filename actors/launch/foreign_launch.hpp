#pragma once
/// Programs started by `mpirun ./app` or `srun ./app` instead of `weft launch`.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <weft/config.hpp>

namespace weft {

/// What another launcher says of the processes that it has started.
struct ForeignLaunch {
  std::string launcher;  ///< "Open MPI", "MPICH", "Slurm"
  int rank = 0;          ///< of this process
  int size = 1;
};

/// Reads the variables of Open MPI (OMPI_COMM_WORLD_*), of MPICH's launcher and its kin (PMI_*,
/// MPI_LOCALNRANKS) and of srun (SLURM_PROCID with SLURM_STEP_*). Absent without such a launcher,
/// where it has started one process only, which may have any number of workers, or where
/// WEFT_IGNORE_LAUNCHER is set. Throws invalid_argument for a malformed variable, unavailable for
/// processes on several hosts.
std::optional<ForeignLaunch> foreign_launch(
    const std::function<const char*(const char* name)>& variable);

/// For fit() with worker processes. The process of rank 0 runs the job, with a worker in place of
/// each process, on the cores that the launcher itself has. All others have nothing to do: this
/// ends them, with exit code 0. A program whose job needs no other process (num_workers = 0) has
/// its own in each rank.
void obey_foreign_launch(ScalingConfig& scaling);

/// Whether the variable is one of those that make a process one of several. Workers don't get them.
bool is_of_foreign_launch(std::string_view name);

}  // namespace weft
