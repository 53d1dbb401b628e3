#pragma once
/// The named loops that the tests of embedding run, and the options they run them with.

#include <string>

#include <weft/weft.hpp>

namespace weft::testing {

/// Starts with 1 and adds `step` `steps` times; reports the result, its rank, and the config's tag.
extern Loop add_one;
extern Loop add_hundred;
/// Runs until it is told to end, asks for that at each step, and says so in a report.
extern Loop until_asked;
/// Runs forever and never asks whether to end.
extern Loop never_asks;

/// Returns options for two workers of one chip, with storage in the tests' folder.
TrainerOptions options(const Config& config, int workers = 2);

}  // namespace weft::testing
