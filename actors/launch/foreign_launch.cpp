#include "actors/launch/foreign_launch.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <limits>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "actors/launch/worker_entry.hpp"

namespace weft {
namespace {

/// The names of the variables that a launcher sets; "" where it sets no such variable.
struct Launcher {
  const char* name;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
  const char* hosts;
  const char* host;
  const char* required;  ///< a further variable that this launcher sets
  /// The values of these variables together identify a start of the program. The first must be set.
  std::initializer_list<const char*> job;
  bool spreads;  ///< without `hosts` and `local_size`, each process counts as a host
};

/// For Slurm, only variables that srun sets count. sbatch and salloc also set SLURM_PROCID and
/// SLURM_NTASKS, although they start the program once. torchrun's variables have general names, so
/// only several of them together count. They come last, because users of other launchers may set
/// them too.
const Launcher kLaunchers[] = {
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     "",
     "",
     "",
     {"PMIX_NAMESPACE"},
     false},
    {"MPICH",
     "PMI_RANK",
     "PMI_SIZE",
     "MPI_LOCALRANKID",
     "MPI_LOCALNRANKS",
     "",
     "",
     "",
     {"PMIX_NAMESPACE"},
     false},
    {"Slurm",
     "SLURM_PROCID",
     "SLURM_STEP_NUM_TASKS",
     "SLURM_LOCALID",
     "",
     "SLURM_STEP_NUM_NODES",
     "SLURM_NODEID",
     "",
     {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"},
     false},
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_RANK",
     "LOCAL_WORLD_SIZE",
     "GROUP_WORLD_SIZE",
     "GROUP_RANK",
     "MASTER_ADDR",
     {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"},
     true},
};

/// The value of TORCHELASTIC_RUN_ID if the user of torchrun gave none.
constexpr std::string_view kNoRunId = "none";

/// Reads the variables of one launcher.
class Facts {
 public:
  Facts(const Launcher& launcher, const VariableLookup& variable)
      : launcher_(launcher), variable_(variable) {}

  bool has(const char* name) const { return *name != '\0' && variable_(name) != nullptr; }
  int number(const char* name, int least, int most = std::numeric_limits<int>::max()) const {
    try {
      return parse_variable(name, variable_(name), least, most);
    } catch (const Error& error) {
      fail(error.code(), "{}; set WEFT_IGNORE_LAUNCHER=1 if no launcher has set it", error.what());
    }
  }
  std::string says(const char* name) const { return fmt::format("{} = {}", name, variable_(name)); }

  std::string job() const {
    std::vector<std::string> parts;
    for (const char* name : launcher_.job) {
      const char* const value = variable_(name);
      if (value != nullptr && *value != '\0' && value != kNoRunId) {
        parts.emplace_back(value);
      } else if (parts.empty()) {
        return {};
      }
    }
    return fmt::format("{}", fmt::join(parts, "."));
  }

 private:
  const Launcher& launcher_;
  const VariableLookup& variable_;
};

[[noreturn]] void refuse_uneven(const ForeignLaunch& launch) {
  fail(Errc::unavailable,
       "{} has not started the same number of processes on each host, one after the other ({}): "
       "start the program once on each host (mpirun --map-by ppr:1:node, srun "
       "--ntasks-per-node=1), or as often as each host is to have workers",
       launch.launcher, launch.says_counts());
}

void read_hosts(const Launcher& launcher, const Facts& facts, ForeignLaunch& found) {
  const bool has_local = facts.has(launcher.local_rank);
  if (has_local) found.local_rank = facts.number(launcher.local_rank, 0);
  if (facts.has(launcher.hosts) && facts.has(launcher.host)) {
    found.hosts = facts.number(launcher.hosts, 1);
    found.host = facts.number(launcher.host, 0, found.hosts - 1);
    found.says_hosts = facts.says(launcher.hosts);
    found.says_host = facts.says(launcher.host);
    if (found.size % found.hosts != 0) refuse_uneven(found);
    return;
  }
  found.says_host = found.says_rank;
  if (!facts.has(launcher.local_size)) {
    if (launcher.spreads) found.hosts = found.size;
    found.host = launcher.spreads ? found.rank : 0;
    if (!has_local && !launcher.spreads) found.local_rank = found.rank;
    return;
  }
  const int here = facts.number(launcher.local_size, 1);
  found.says_hosts = facts.says(launcher.local_size);
  if (!has_local) found.local_rank = found.rank % here;
  if (found.size % here != 0 || found.rank % here != found.local_rank) refuse_uneven(found);
  found.hosts = found.size / here;
  found.host = found.rank / here;
}

/// Lets this process run on all cores of its parent, the launcher. Otherwise the workers, which are
/// its children, would share the cores of the one rank to which the launcher has bound it.
void take_cores_of_launcher() {
  cpu_set_t cores;
  if (::sched_getaffinity(::getppid(), sizeof cores, &cores) != 0) return;
  ::sched_setaffinity(0, sizeof cores, &cores);
}

}  // namespace

std::optional<ForeignLaunch> foreign_launch(const VariableLookup& variable) {
  if (const char* ignore = variable("WEFT_IGNORE_LAUNCHER"); ignore != nullptr && *ignore != '\0') {
    return {};
  }
  for (const Launcher& launcher : kLaunchers) {
    const Facts facts(launcher, variable);
    if (!facts.has(launcher.rank) || !facts.has(launcher.size)) continue;
    if (*launcher.required != '\0' && !facts.has(launcher.required)) continue;
    ForeignLaunch found{.launcher = launcher.name,
                        .rank = facts.number(launcher.rank, 0),
                        .size = facts.number(launcher.size, 1),
                        .job = facts.job(),
                        .says_rank = facts.says(launcher.rank),
                        .says_size = facts.says(launcher.size)};
    if (found.size == 1) return {};
    read_hosts(launcher, facts, found);
    return found;
  }
  return {};
}

void obey_foreign_launch(const ForeignLaunch& launch, const HostPlace& place,
                         ScalingConfig& scaling) {
  if (scaling.num_workers == 0) return;
  const bool several_share_host = place.count != launch.size;
  if (several_share_host) {
    if (launch.local_rank != 0) end_worker_process(0);
    scaling.num_workers = launch.size;
  }
  take_cores_of_launcher();
}

bool is_of_foreign_launch(std::string_view name) {
  return std::ranges::any_of(kLaunchers, [&](const Launcher& launcher) {
    return !launcher.spreads && (name == launcher.rank || name == launcher.size);
  });
}

}  // namespace weft
