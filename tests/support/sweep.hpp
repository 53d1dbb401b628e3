#pragma once
/// Removes what a test's job leaves when its trainer was killed.

#include <string>

namespace weft::testing {

/// Waits for the end of the job's processes and removes what the job has left; trainers and
/// sweepers of other tests may do so first. It retries until nothing remains; the test's timeout
/// limits this.
void sweep(const std::string& job);

}  // namespace weft::testing
