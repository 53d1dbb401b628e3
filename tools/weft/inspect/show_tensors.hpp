#pragma once
/// Shows the contents of a checkpoint or a safetensors file: name, type, layout and size of each
/// tensor.

#include <string>

namespace weft {

/// Prints the tensors of `path`, as JSON if `json`. With `verify`, reads all of a checkpoint and
/// prints its faults. Returns 0, or 1 if there is a fault. Throws the errors of StateFile::open().
int show_tensors(const std::string& path, bool json, bool verify);

}  // namespace weft
