#pragma once
/// Makes the error messages for workers whose programs differ.

#include <string>

#include "actors/protocol/protocol.hpp"

namespace weft {

/// Added to the error if only some workers read a value.
inline constexpr const char* kReadsAreCollective =
    "; reads are collective: every worker must call item(), to_vector() and to_bytes() of a "
    "tensor that isn't computed yet or is sharded (unmarked optimizer state of 64 KiB or more "
    "may be sharded)";

/// Describes two workers, with the given names, that want different programs for the same run.
std::string describe_divergence(const ProgramSeen& first, const std::string& first_name,
                                const ProgramSeen& second, const std::string& second_name);
/// Describes two workers whose loops ended after different numbers of programs.
std::string describe_uneven(const LoopEnded& first, const std::string& first_name,
                            const LoopEnded& second, const std::string& second_name);

}  // namespace weft
