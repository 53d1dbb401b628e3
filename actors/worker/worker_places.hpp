#pragma once
/// Finds the positions of a worker and its chips in the job's mesh.

#include <vector>

#include <weft/sharding/mesh.hpp>

#include "actors/protocol/protocol.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

/// Returns the mesh of the job. If the job has no mesh, returns a mesh of one chip for the worker's
/// own programs.
Mesh mesh_of(const Assignment& assignment);
/// Returns the mesh for the chips' memory. If the job runs on one host, all its chips share that
/// host's memory, even if a HybridMesh divides them into several hosts.
Mesh memory_mesh_of(const Assignment& assignment);
/// Returns the positions of the worker's chips. The workers get the chips in order of the chips'
/// ids.
std::vector<int> positions_of(const Assignment& assignment, const Mesh& mesh, int worker);
/// Returns how the worker's chips wait for others. With `owns_cores`, no other worker uses the
/// cores on which these chips run.
WaitPolicy policy_of(const Assignment& assignment, const Mesh& mesh, bool owns_cores);

}  // namespace weft
