#pragma once
/// The places of a worker and its chips in the job's mesh.

#include <vector>

#include <weft/sharding/mesh.hpp>

#include "actors/protocol/protocol.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

/// The mesh of the job; without a mesh, the one chip that a worker's own programs run on.
Mesh mesh_of(const Assignment& assignment);
/// The positions of the worker's chips. Chips are dealt to workers in order of their ids.
std::vector<int> positions_of(const Assignment& assignment, const Mesh& mesh, int worker);
/// How its chips wait for others. `owns_cores`: each worker has cores of its own, so that only its
/// own chips share them.
WaitPolicy policy_of(const Assignment& assignment, const Mesh& mesh, bool owns_cores);

}  // namespace weft
