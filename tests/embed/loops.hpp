#pragma once
/// Loops with names that the tests of embedding run, and how they run them.

#include <string>

#include <weft/weft.hpp>

namespace weft::testing {

/// From 1, `step` is added `steps` times; reports what came of it, its rank, and the config's tag.
extern Loop add_one;
extern Loop add_hundred;
/// Runs until it is told to end, and asks; says so in a report.
extern Loop until_asked;
/// Runs for ever, and never asks.
extern Loop never_asks;

/// Two workers of one chip, storage in the tests' folder.
TrainerOptions options(const Config& config, int workers = 2);

}  // namespace weft::testing
