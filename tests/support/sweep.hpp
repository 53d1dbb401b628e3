#pragma once
/// Removes what a test's job has left if its trainer was killed.

#include <string>

namespace weft::testing {

/// Waits for the end of the job's processes and removes what the job has left, unless trainers or
/// sweepers of other tests do so first. Retries until nothing remains; the test's timeout limits
/// this.
void sweep(const std::string& job);

}  // namespace weft::testing
