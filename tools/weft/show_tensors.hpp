#pragma once
/// What a checkpoint or a safetensors file holds: name, type, layout and size of each tensor.

#include <string>

namespace weft {

/// Prints the tensors of `path`, as JSON on request; with `verify` reads all of a checkpoint and
/// says what is wrong. Returns 0, or 1 if something is wrong. Throws as StateFile::open().
int show_tensors(const std::string& path, bool json, bool verify);

}  // namespace weft
