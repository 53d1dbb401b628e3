#pragma once
/// progress.csv of a run folder, which grows.

#include <ios>
#include <string>

namespace weft {

/// The head, and the rows in the last `bytes` of the file; all of a shorter one. "": there is none.
std::string head_and_tail(const std::string& path, std::streamoff bytes);

}  // namespace weft
