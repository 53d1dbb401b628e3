#include "tests/support/sweep.hpp"

#include <chrono>

#include "tests/support/app_process.hpp"
#include "transport/job/remains.hpp"

namespace weft::testing {

void sweep(const std::string& job) {
  wait_until([&] { return processes_of(job).empty(); });
  // The environment of a process that ends disappears before its locks are released.
  wait_until([&] {
    const auto remains = wait_until_dead(job, std::chrono::seconds(60));
    return !remains || remove_remains(*remains, true).empty();
  });
  expect_nothing_left(job);
}

}  // namespace weft::testing
