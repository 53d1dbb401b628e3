#pragma once
/// Notes: files in a shared folder by which the ranks of a benchmark on several hosts find each
/// other.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transport/wires/wires.hpp"

namespace weft::bench {

/// The environment variable with the address of this host. Without it, the address is that of the
/// loopback device.
inline constexpr char kAddressVariable[] = "WEFT_BENCH_ADDRESS";
std::string own_address();

/// Texts that ranks pass to each other as files in a folder.
class Notes {
 public:
  explicit Notes(std::string folder) : folder_(std::move(folder)) {}

  void write(const std::string& name, const std::string& text) const;
  /// Waits until the note exists, and returns its text. Throws timeout.
  std::string read(const std::string& name) const;

 private:
  std::string folder_;
};

/// Begins to connect a chip to `peers`, which are device ids.
std::unique_ptr<Wires> connect(bool is_ucx, int chip, const std::vector<int>& peers,
                               const Notes& notes);

}  // namespace weft::bench
