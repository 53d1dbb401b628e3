#include "actors/launch/foreign_launch.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include <weft/tensor/error.hpp>

#include "actors/launch/worker_entry.hpp"

namespace weft {
namespace {

/// The names of the variables that a launcher sets: `here` for the number of processes on this
/// host, `hosts` for the number of hosts.
struct Launcher {
  const char* name;
  const char* rank;
  const char* size;
  const char* here;
  const char* hosts;
};

/// For Slurm, only variables that srun sets count. sbatch and salloc also set SLURM_PROCID and
/// SLURM_NTASKS, although they start the program once.
constexpr Launcher kLaunchers[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", ""},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", ""},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "", "SLURM_STEP_NUM_NODES"},
};

int number(const char* name, const char* text, int least) {
  int value = 0;
  const std::string_view view(text);
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc{} || end != view.data() + view.size() || value < least) {
    fail(Errc::invalid_argument,
         "{} = \"{}\": expected a number from {} up; set WEFT_IGNORE_LAUNCHER=1 if no launcher has "
         "set it",
         name, text, least);
  }
  return value;
}

/// Lets this process, rank 0, run on all cores of its parent, the launcher. The launcher has bound
/// it to the cores of one rank, and the workers, its children, would otherwise share those.
void take_cores_of_launcher() {
  cpu_set_t cores;
  if (::sched_getaffinity(::getppid(), sizeof cores, &cores) != 0) return;
  ::sched_setaffinity(0, sizeof cores, &cores);
}

}  // namespace

std::optional<ForeignLaunch> foreign_launch(
    const std::function<const char*(const char* name)>& variable) {
  if (const char* ignore = variable("WEFT_IGNORE_LAUNCHER"); ignore != nullptr && *ignore != '\0') {
    return {};
  }
  for (const Launcher& launcher : kLaunchers) {
    const char* rank = variable(launcher.rank);
    const char* size = variable(launcher.size);
    if (rank == nullptr || size == nullptr) continue;
    const ForeignLaunch found{.launcher = launcher.name,
                              .rank = number(launcher.rank, rank, 0),
                              .size = number(launcher.size, size, 1)};
    if (found.size == 1) return {};
    const char* here = variable(launcher.here);
    const char* hosts = variable(launcher.hosts);
    const bool elsewhere = (here != nullptr && number(launcher.here, here, 1) < found.size) ||
                           (hosts != nullptr && number(launcher.hosts, hosts, 1) > 1);
    if (elsewhere) {
      fail(Errc::unavailable,
           "{} has started {} processes on several hosts ({} = {}): this version runs a job on one "
           "host; start them all on one (mpirun --host localhost:{}, srun -N 1)",
           found.launcher, found.size, here != nullptr ? launcher.here : launcher.hosts,
           here != nullptr ? here : hosts, found.size);
    }
    return found;
  }
  return {};
}

void obey_foreign_launch(ScalingConfig& scaling) {
  if (scaling.num_workers == 0) return;
  const auto launch = foreign_launch(
      [](const char* name) -> const char* { return *name == '\0' ? nullptr : std::getenv(name); });
  if (!launch) return;
  if (launch->rank != 0) end_worker_process(0);
  take_cores_of_launcher();
  scaling.num_workers = launch->size;
}

bool is_of_foreign_launch(std::string_view name) {
  return std::ranges::any_of(kLaunchers, [&](const Launcher& launcher) {
    return name == launcher.rank || name == launcher.size;
  });
}

}  // namespace weft
