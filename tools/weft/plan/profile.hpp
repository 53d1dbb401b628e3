#pragma once
/// `weft plan --profile`: shows what the steps of a job's plan cost and how long they took.

#include <cstdint>
#include <optional>
#include <string>

namespace weft {

struct ProfileOptions {
  std::string job{};                       ///< which job, as for `weft inspect`
  std::optional<std::uint32_t> program{};  ///< a number; by default the program that took longest
  std::string svg{};                       ///< the path for a picture of the roofline; empty: none
  // The limits of a chip that has a core for itself; if 0, they are measured.
  double gflops = 0;
  double gbytes = 0;
  bool json = false;
};

/// Prints the profile and returns the exit code: 0; 2 if there is no such job; 3 if the job has no
/// profile or a file can't be written.
int show_profile(const ProfileOptions& options);

}  // namespace weft
