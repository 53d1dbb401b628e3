#pragma once
/// Removal of what a test's job has left whose trainer was killed.

#include <string>

namespace weft::testing {

/// Waits for the end of the job's processes, and removes what is left of it; trainers and sweepers
/// of other tests may do so first. It tries until nothing is left: the test's timeout ends that.
void sweep(const std::string& job);

}  // namespace weft::testing
