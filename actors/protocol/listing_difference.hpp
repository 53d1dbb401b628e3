#pragma once
/// Where the programs of two workers part.

#include <string>

#include "actors/protocol/protocol.hpp"

namespace weft {

struct Difference {
  int line = 0;
  std::string first, second;
};

/// The first line in which two listings (to_text) differ: in what is computed, or, where that is
/// the same, in how it lies on the chips. Line 0: in nothing.
Difference first_difference(const std::string& first, const std::string& second);

/// What to say of two workers, so named, that want different programs for one run.
std::string describe_divergence(const ProgramSeen& first, const std::string& first_name,
                                const ProgramSeen& second, const std::string& second_name);
/// And of two whose loops ended after different numbers of programs.
std::string describe_uneven(const LoopEnded& first, const std::string& first_name,
                            const LoopEnded& second, const std::string& second_name);

}  // namespace weft
