#pragma once
/// Functions with which these tests run their loops.

#include <functional>
#include <string>

#include <weft/weft.hpp>

namespace weft::testing {

/// Runs the loop in workers of two chips each, or in this process if `workers` is 0. Removes the
/// run folder.
Result run_loop(const Loop& loop, int workers, const Config& config = Config::object(),
                const std::function<void(TrainerOptions&)>& change = {});

/// A run with the logs of the trainer and of its workers.
struct LoggedRun {
  Result result;
  std::string log;
};
LoggedRun run_logged(const Loop& loop, int workers);

/// Expects that the result is ok, and otherwise prints why it failed.
const Result& expect_ok(const Result& result);

}  // namespace weft::testing
