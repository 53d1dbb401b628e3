#pragma once
/// Shardings in the program text, as Sharding::to_string writes them.

#include "spmd/mesh/sharding.hpp"
#include "spmd/text/text_reader.hpp"

namespace weft {

/// Reads the sharding of a value of `num_dims` dims. Throws invalid_argument with the place in the
/// text for anything else.
Sharding read_sharding(TextReader& reader, const Mesh& mesh, int num_dims);

/// Reads `{"data", "model":0}`.
AtomList read_atoms(TextReader& reader, const Mesh& mesh);

}  // namespace weft
