#pragma once
/// Handles programs that `mpirun ./app` or `srun ./app` starts instead of `weft launch`.

#include <optional>
#include <string>
#include <string_view>

#include <weft/job/config.hpp>

#include "actors/protocol/host_place.hpp"

namespace weft {

/// Describes processes that another launcher has started, by the variables that it sets.
struct ForeignLaunch {
  std::string launcher;  ///< "Open MPI", "MPICH", "Slurm", "torchrun"
  int rank = 0;          ///< the rank of this process
  int size = 1;
  int hosts = 1;       ///< number of hosts, each with the same number of processes
  int host = 0;        ///< number of this host
  int local_rank = 0;  ///< rank among the processes of this host
  std::string job{};   ///< identifies this start of the program among all of the launcher; "":
                       ///< unknown
  // The variables from which the values are, for messages: "SLURM_STEP_NUM_NODES = 2".
  std::string says_rank{};
  std::string says_size{};
  std::string says_hosts{};  ///< "": the number of hosts is computed from `size`
  std::string says_host{};

  /// Returns the variables that give the numbers of processes and hosts, as text.
  std::string says_counts() const {
    return says_hosts.empty() ? says_size : says_size + ", " + says_hosts;
  }
};

/// Reads the variables of Open MPI (OMPI_COMM_WORLD_*), of MPICH's launcher and its relatives
/// (PMI_*, MPI_LOCALNRANKS), of srun (SLURM_PROCID with SLURM_STEP_*), and of torchrun and programs
/// that set its variables (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT; GROUP_* and LOCAL_*).
/// Returns nothing if there is no such launcher or if WEFT_IGNORE_LAUNCHER is set. Also returns
/// nothing if the launcher has started only one process, because that process may have any number
/// of workers. Throws invalid_argument for a malformed variable, and unavailable if hosts have
/// different numbers of processes.
std::optional<ForeignLaunch> foreign_launch(const VariableLookup& variable);

/// Adapts a fit() with worker processes to a foreign launcher. If the launcher has started several
/// processes on this host, only the first takes part, with as many workers as there were processes;
/// this function ends the others with exit code 0. With one process per host, the program sets the
/// number of workers. A process that takes part may use all cores of the launcher. With num_workers
/// = 0 it does nothing: each rank then runs its own job.
void obey_foreign_launch(const ForeignLaunch& launch, const HostPlace& place,
                         ScalingConfig& scaling);

/// Returns whether a launcher sets this variable to make a process one of several. Workers don't
/// get such variables. torchrun's variables don't count, because loops may read them.
bool is_of_foreign_launch(std::string_view name);

}  // namespace weft
