#include "actors/host/job_place.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/link/environment.hpp"
#include "chips/registry/registry.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "transport/blackbox/box_clock.hpp"
#include "transport/job/private_file.hpp"
#include "transport/memory/namespaces.hpp"

namespace weft {
namespace {

/// The number of random bytes in an id or a token.
constexpr std::size_t kIdBytes = 16;

constexpr const char* kArenaVariable = "WEFT_ARENA_BYTES";

std::size_t arena_capacity(const std::string& text) {
  std::size_t bytes = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, bytes);
  const bool is_number = error == std::errc() && parsed == end;
  if (!is_number || bytes < 2 * kArenaCapacityUnit || bytes % kArenaCapacityUnit != 0) {
    fail(Errc::invalid_argument,
         "{} = \"{}\": expected a number of bytes that is a multiple of {}, at least {}",
         kArenaVariable, text, kArenaCapacityUnit, 2 * kArenaCapacityUnit);
  }
  return bytes;
}

/// The jobs that this process holds. An exit handler removes them, because exit() doesn't run the
/// destructors of objects on the stack.
class HeldJobs {
 public:
  struct Held {
    std::string root;
    pid_t owner = 0;
    JobLock lock;
    bool outlives_exit = false;
  };

  /// Returns the list of this process. It is never destroyed, because threads with jobs may outlive
  /// static objects.
  static HeldJobs& all() {
    static HeldJobs* const held = [] {
      std::atexit([] { all().remove_all(); });
      std::at_quick_exit([] { all().remove_all(); });
      return new HeldJobs;
    }();
    return *held;
  }

  void add(const std::string& id, Held held) {
    const std::lock_guard guard(mutex_);
    jobs_[id] = std::move(held);
  }
  void remove(const std::string& id) {
    const std::lock_guard guard(mutex_);
    const auto job = jobs_.find(id);
    // A forked child has a copy of the entry; only the parent owns the job.
    if (job == jobs_.end() || job->second.owner != ::getpid()) return;
    remove_job(job->second.root, id);
    jobs_.erase(job);
  }
  void leave(const std::string& id) {
    const std::lock_guard guard(mutex_);
    jobs_.erase(id);
  }

 private:
  void remove_all() {
    // The wait is limited because in a child that was forked while another thread held the mutex,
    // no thread unlocks it.
    const std::unique_lock guard(mutex_, std::chrono::seconds(1));
    if (!guard) return;
    for (const auto& [id, job] : jobs_) {
      if (job.owner == ::getpid() && !job.outlives_exit) remove_job(job.root, id);
    }
  }

  std::timed_mutex mutex_;
  std::map<std::string, Held> jobs_;
};

}  // namespace

std::string random_id() { return random_hex(kIdBytes); }

JobPlace::JobPlace(bool outlives_exit, std::optional<JobPart> part)
    : id_(part ? part->memory_id : random_id()),
      job_(part ? std::move(part->job) : JobIdentity{.id = id_, .token = random_id()}),
      root_(make_control_root()) {
  sweep_dead_jobs(root_);
  // The lock is taken before the folder is made, because other processes remove a job whose lock
  // isn't held.
  HeldJobs::all().add(id_, {.root = root_,
                            .owner = ::getpid(),
                            .lock = JobLock::take(root_, id_),
                            .outlives_exit = outlives_exit});
  try {
    make_private_folder(folder_in(root_, id_));
  } catch (...) {
    remove();
    throw;
  }
}

std::vector<std::string> JobPlace::variables_of(const JobSpec& spec, const LoopIdentity& loop,
                                                const std::string& address, int worker) const {
  HostPlace place = spec.place;
  if (place.count > 1) place.trainer = to_string(tls_address(address));
  return to_variables({.job_id = job_.id,
                       .token = job_.token,
                       .coordinator_address = address,
                       .num_processes = spec.num_workers,
                       .process_index = worker,
                       .job_folder = folder(),
                       .memory_id = id_,
                       .loop = loop.name,
                       .loop_object = loop.object,
                       .loop_build = loop.build,
                       .actors = spec.actors,
                       .cpus = spec.cpus_per_worker,
                       .tls = spec.tls,
                       .place = std::move(place)},
                      spec.device.kind, spec.mesh);
}

void JobPlace::keep_secret(const std::string& secret) const {
  WorkerEnvironment workers;
  workers.job_folder = folder();
  write_private_file(workers.secret_path(), secret);
}

void JobPlace::remove() { HeldJobs::all().remove(id_); }
void JobPlace::leave() { HeldJobs::all().leave(id_); }

Board JobPlace::make_board(const JobSpec& spec, const std::string& run_dir) const {
  BoardHeader header{
      .job = id_,
      .name = spec.name,
      .run_dir = run_dir,
      .mesh_shape = {},
      .axis_names = {},
      .dcn_shape = {},
      .device_ids = {},
      .num_workers = spec.num_joins(),
      .num_chips = spec.num_chips(),
      .trainer_pid = ::getpid(),
      .started_unix_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count(),
      .time_namespace = namespace_of_this_process("time"),
      .boottime_minus_realtime_ns = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_REALTIME),
      .host = spec.place.index,
      .num_hosts = spec.place.count};
  if (spec.mesh) {
    header.mesh_shape = spec.mesh->shape();
    header.axis_names = spec.mesh->axis_names();
    header.dcn_shape = dcn_shape(*spec.mesh);
    const std::vector<int>& ids = spec.mesh->device_ids();
    if (!std::ranges::is_sorted(ids)) header.device_ids = ids;
  }
  return Board::create(header);
}

BlackBoxWriter JobPlace::make_box(const JobSpec& spec) const {
  return BlackBoxWriter::create({.job = id_,
                                 .num_workers = spec.num_joins(),
                                 .num_chips = spec.num_chips(),
                                 .level = trace_level_of_environment()});
}

JobMemory JobPlace::make_memory(const JobSpec& spec) const {
  JobMemoryOptions options{.job = id_,
                           .num_chips = spec.chips_per_host(),
                           .arena_capacity = chip_kind(spec.device.kind).arena_capacity,
                           .control_root = root_};
  if (const char* const text = std::getenv(kArenaVariable)) {
    options.arena_capacity = arena_capacity(text);
  }
  JobMemory memory = JobMemory::create(options);
  memory.hide_arenas_from_children();
  return memory;
}

}  // namespace weft
