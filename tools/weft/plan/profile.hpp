#pragma once
/// `weft plan --profile`: what the steps of a job's plan cost and how long they took.

#include <cstdint>
#include <optional>
#include <string>

namespace weft {

struct ProfileOptions {
  std::string job{};                       ///< as for `weft inspect`
  std::optional<std::uint32_t> program{};  ///< its number; by default that which took longest
  std::string svg{};                       ///< a file for the roofline; empty: none
  // Limits of a chip while it has a core; 0: measured.
  double gflops = 0;
  double gbytes = 0;
  bool json = false;
};

/// Prints it, and returns the exit code: 0, 2 without such a job, 3 where it has no profile or a
/// file can't be written.
int show_profile(const ProfileOptions& options);

}  // namespace weft
