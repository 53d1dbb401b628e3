#pragma once
/// Removal of what a test's job has left whose trainer was killed.

#include <string>

namespace weft::testing {

/// Waits for the end of the job's processes, removes what is left of it, and fails the test if
/// something stays. Trainers and sweepers of other tests may remove it first.
void sweep(const std::string& job);

}  // namespace weft::testing
