#include "actors/trainer/job_spec.hpp"

namespace weft {

Assignment assignment_of(const JobSpec& spec, const std::string& run_dir) {
  Assignment assignment{.num_workers = spec.num_joins(),
                        .chips_per_worker = spec.chips_per_worker,
                        .timeout_ms = spec.timeout().count(),
                        .seed = spec.seed,
                        .run_dir = run_dir,
                        .recovers = spec.recovery.recovers(),
                        .keeps_state = spec.keeps_state,
                        .check_replicas_every = spec.check_replicas_every,
                        .checkpoint = spec.checkpoint};
  if (assignment.checkpoint.path.empty()) assignment.checkpoint.path = run_dir + "/checkpoints";
  if (spec.mesh) {
    assignment.mesh_shape = spec.mesh->shape();
    assignment.axis_names = spec.mesh->axis_names();
  }
  return assignment;
}

}  // namespace weft
