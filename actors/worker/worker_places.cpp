#include "actors/worker/worker_places.hpp"

#include <chrono>

#include "spmd/mesh/hybrid_mesh.hpp"

namespace weft {

Mesh mesh_of(const Assignment& assignment) {
  if (assignment.mesh_shape.empty()) return Mesh({1}, {"data"});
  return Mesh(assignment.mesh_shape, assignment.axis_names, assignment.device_ids,
              assignment.dcn_shape);
}

Mesh memory_mesh_of(const Assignment& assignment) {
  const Mesh mesh = mesh_of(assignment);
  return assignment.num_hosts > 1 ? mesh : in_one_memory(mesh);
}

std::vector<int> positions_of(const Assignment& assignment, const Mesh& mesh, int worker) {
  if (assignment.mesh_shape.empty()) return {0};
  std::vector<int> positions;
  for (int c = 0; c < assignment.chips_per_worker; ++c) {
    positions.push_back(mesh.position_of(worker * assignment.chips_per_worker + c));
  }
  return positions;
}

WaitPolicy policy_of(const Assignment& assignment, const Mesh& mesh, bool owns_cores) {
  const int threads = owns_cores ? assignment.chips_per_worker : chips_per_host(mesh);
  return WaitPolicy::for_threads(threads, std::chrono::milliseconds(assignment.timeout_ms));
}

}  // namespace weft
