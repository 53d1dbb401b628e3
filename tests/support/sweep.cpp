#include "tests/support/sweep.hpp"

#include <chrono>

#include "tests/support/app_process.hpp"
#include "transport/job/remains.hpp"

namespace weft::testing {

void sweep(const std::string& job) {
  wait_until([&] { return processes_of(job).empty(); });
  // A dying process loses its environment before its locks are released, so one try may fail.
  wait_until([&] {
    const auto remains = wait_until_dead(job, std::chrono::seconds(60));
    return !remains || remove_remains(*remains, true).empty();
  });
  expect_nothing_left(job);
}

}  // namespace weft::testing
