#pragma once
/// Functions that run a loop as a job, for the tests in this folder.

#include <functional>
#include <string>

#include <weft/weft.hpp>

namespace weft::testing {

/// Runs the loop in `workers` workers of two chips each, or in this process if `workers` is 0.
/// Removes the run's folder.
Result run_loop(const Loop& loop, int workers, const Config& config = Config::object(),
                const std::function<void(TrainerOptions&)>& change = {});

/// The result of a job and the logs of its trainer and workers.
struct LoggedRun {
  Result result;
  std::string log;
};
LoggedRun run_logged(const Loop& loop, int workers);

/// Expects that the result is ok, and prints the error if it isn't. Returns the result.
const Result& expect_ok(const Result& result);

}  // namespace weft::testing
