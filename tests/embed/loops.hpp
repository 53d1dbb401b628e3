#pragma once
/// The named loops that the tests of embedding run, and the options they run them with.

#include <string>

#include <weft/weft.hpp>

namespace weft::testing {

/// Loops that begin at 1, add 1 or 100 in each of config["steps"] steps, and report the sum, the
/// rank and config["tag"].
extern Loop add_one;
extern Loop add_hundred;
/// Asks at each step whether to end. When the answer is yes, reports that and ends.
extern Loop until_asked;
/// Runs forever and never asks whether to end.
extern Loop never_asks;

/// Returns options for two workers of one chip, with storage in the tests' folder.
TrainerOptions options(const Config& config, int workers = 2);

}  // namespace weft::testing
