#pragma once
/// The number of what processes of weft say to each other: preamble, messages, variables. It goes
/// up with every change of one of them.

#include <cstdint>

/// A macro, as the ELF note that carries it (worker_entry.cpp) is assembler.
#define WEFT_ABI 2

namespace weft {

inline constexpr std::uint32_t kAbi = WEFT_ABI;

}  // namespace weft
