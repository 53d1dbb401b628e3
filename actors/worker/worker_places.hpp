#pragma once
/// Finds the positions of a worker and its chips in the job's mesh.

#include <vector>

#include <weft/sharding/mesh.hpp>

#include "actors/protocol/protocol.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

/// Returns the mesh of the job. If the job has none, returns a mesh of one chip, on which the
/// worker's own programs run.
Mesh mesh_of(const Assignment& assignment);
/// Returns the mesh as the chips' memory has it. If the job runs on one host, all its chips share
/// the host's memory, also those of different hosts of a HybridMesh.
Mesh memory_mesh_of(const Assignment& assignment);
/// Returns the positions of the worker's chips. Chips are assigned to workers in order of their
/// ids.
std::vector<int> positions_of(const Assignment& assignment, const Mesh& mesh, int worker);
/// Returns how the worker's chips wait for others. With `owns_cores`, each worker has cores of its
/// own, which only its own chips share.
WaitPolicy policy_of(const Assignment& assignment, const Mesh& mesh, bool owns_cores);

}  // namespace weft
