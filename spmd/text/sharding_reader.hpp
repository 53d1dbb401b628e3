#pragma once
/// Reads shardings in the program text, in the form that Sharding::to_string writes.

#include "spmd/mesh/sharding.hpp"
#include "spmd/text/text_reader.hpp"

namespace weft {

/// Reads the sharding of a value with `num_dims` dims. Throws invalid_argument, with the place in
/// the text, if there is no such sharding.
Sharding read_sharding(TextReader& reader, const Mesh& mesh, int num_dims);

/// Reads a list of axes and atoms such as `{"data", "model":0}`.
AtomList read_atoms(TextReader& reader, const Mesh& mesh);

}  // namespace weft
