#pragma once
/// The version of everything that weft's processes exchange: the preamble, messages and variables.
/// Every change of these increments the version.

#include <cstdint>

/// The version. It is a macro because the ELF note that contains it (worker_entry.cpp) is written
/// in assembler.
#define WEFT_ABI 3

namespace weft {

inline constexpr std::uint32_t kAbi = WEFT_ABI;

}  // namespace weft
