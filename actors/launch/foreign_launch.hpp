#pragma once
/// Handles programs that are started by `mpirun ./app` or `srun ./app` instead of `weft launch`.

#include <optional>
#include <string>
#include <string_view>

#include <weft/job/config.hpp>

#include "actors/protocol/host_place.hpp"

namespace weft {

/// The facts that another launcher gives about the processes it has started.
struct ForeignLaunch {
  std::string launcher;  ///< "Open MPI", "MPICH", "Slurm", "torchrun"
  int rank = 0;          ///< the rank of this process
  int size = 1;
  int hosts = 1;       ///< the number of hosts, each with the same number of processes
  int host = 0;        ///< the number of this host
  int local_rank = 0;  ///< among the processes of this host
  std::string job{};   ///< names this start of the program among all of the launcher; "": unknown
  // The following texts are for messages: "SLURM_STEP_NUM_NODES = 2".
  std::string says_rank{};
  std::string says_size{};
  std::string says_hosts{};  ///< "": the number of hosts follows from `size`
  std::string says_host{};

  /// Returns the text of the variables that give the numbers of processes and hosts.
  std::string says_counts() const {
    return says_hosts.empty() ? says_size : says_size + ", " + says_hosts;
  }
};

/// Reads the variables of Open MPI (OMPI_COMM_WORLD_*), of MPICH's launcher and its relatives
/// (PMI_*, MPI_LOCALNRANKS), of srun (SLURM_PROCID with SLURM_STEP_*), and of torchrun and programs
/// that set its variables (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT; GROUP_* and LOCAL_*).
/// Returns nothing if there is no such launcher or if WEFT_IGNORE_LAUNCHER is set. Also returns
/// nothing if the launcher has started only one process, because that process may have any number
/// of workers. Throws invalid_argument for a malformed variable, unavailable for hosts with
/// different numbers of processes.
std::optional<ForeignLaunch> foreign_launch(const VariableLookup& variable);

/// Adapts a fit() with worker processes to a foreign launcher. If the launcher has started several
/// processes on this host, only the first one takes part, with as many workers as the launcher has
/// started processes, and this function ends the others with exit code 0. With one process on each
/// host, the number of workers is the program's. A process that takes part may use all cores of the
/// launcher. If num_workers = 0, it does nothing, and each rank runs its own job.
void obey_foreign_launch(const ForeignLaunch& launch, const HostPlace& place,
                         ScalingConfig& scaling);

/// Returns whether a launcher sets this variable to make a process one of several. Workers don't
/// get such variables. Those of torchrun aren't counted, because loops may read them.
bool is_of_foreign_launch(std::string_view name);

}  // namespace weft
