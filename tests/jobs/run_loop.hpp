#pragma once
/// How these tests run their loops.

#include <functional>
#include <string>

#include <weft/weft.hpp>

namespace weft::testing {

/// In workers of two chips each; 0 workers: in this process. Its run folder is removed.
Result run_loop(const Loop& loop, int workers, const Config& config = Config::object(),
                const std::function<void(TrainerOptions&)>& change = {});

/// The logs of the trainer and of its workers.
struct LoggedRun {
  Result result;
  std::string log;
};
LoggedRun run_logged(const Loop& loop, int workers);

/// What ran, or how it failed.
const Result& expect_ok(const Result& result);

}  // namespace weft::testing
