#include "actors/trainer/job_spec.hpp"

#include "actors/process/log.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"

namespace weft {
namespace {

/// The largest plausible number of chips per core. A larger number is a mistake, or used in a test.
constexpr int kChipsPerCoreMax = 16;

}  // namespace

void say_resources(const JobSpec& spec, int crowd, int usable_cores, std::size_t arena_bytes) {
  logger("weft.transport")
      ->info("chip arenas: {} of {} bytes each, reserved as they are used", spec.num_chips(),
             arena_bytes);
  if (crowd > usable_cores) {
    logger("weft.trainer")
        ->warn("the jobs of this program have {} chips on {} cores: they slow each other down",
               crowd, usable_cores);
  }
  logger("weft.trainer")->info("{}", spec.device.why);
  if (spec.is_eager) {
    logger("weft.trainer")
        ->warn(
            "the job is eager: each op runs when it is recorded, on one chip, which takes many "
            "times as long; leave out run.debug = DebugMode::eager and WEFT_EAGER to train");
  }
  if (spec.num_chips() > kChipsPerCoreMax * usable_cores) {
    logger("weft.trainer")
        ->warn(
            "{} workers with {} chips are {} threads on {} cores. In every collective each "
            "thread waits until all others have had their turns; use fewer workers or chips "
            "(weft launch -n, --chips, or scaling)",
            spec.num_joins(), spec.chips_per_worker, spec.num_chips(), usable_cores);
  }
  const int cpus = spec.num_joins() * spec.cpus_per_worker;
  if (cpus <= usable_cores) return;
  logger("weft.trainer")
      ->warn(
          "scaling.resources_per_worker[\"CPU\"] = {} for {} workers needs {} cores, but there "
          "are {}, which the workers share",
          spec.cpus_per_worker, spec.num_joins(), cpus, usable_cores);
}

JobInfo info_of(const JobSpec& spec, const std::string& id, const std::string& run_dir) {
  return {.id = id,
          .name = spec.name,
          .path = run_dir,
          .num_workers = spec.num_workers,
          .mesh = spec.mesh};
}

Assignment assignment_of(const JobSpec& spec, const std::string& run_dir) {
  Assignment assignment{.device = spec.device.kind,
                        .num_hosts = spec.place.count,
                        .num_workers = spec.num_joins(),
                        .chips_per_worker = spec.chips_per_worker,
                        .timeout_ms = spec.timeout().count(),
                        .seed = spec.seed,
                        .run_dir = run_dir,
                        .recovers = spec.recovery.recovers(),
                        .keeps_state = spec.keeps_state,
                        .check_replicas_every = spec.check_replicas_every,
                        .is_eager = spec.is_eager,
                        .checkpoint = spec.checkpoint,
                        .resume_partial = spec.resume_partial};
  if (assignment.checkpoint.path.empty()) assignment.checkpoint.path = run_dir + "/checkpoints";
  if (spec.mesh) {
    assignment.mesh_shape = spec.mesh->shape();
    assignment.axis_names = spec.mesh->axis_names();
    assignment.device_ids = spec.mesh->device_ids();
    assignment.dcn_shape = dcn_shape(*spec.mesh);
  }
  return assignment;
}

}  // namespace weft
