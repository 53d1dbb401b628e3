#pragma once
/// Notes: how ranks on several hosts find each other in a benchmark. The hosts share a folder.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transport/wires/wires.hpp"

namespace weft::bench {

/// The address of this host, from the variable of this name; that of the loopback device without.
inline constexpr char kAddressVariable[] = "WEFT_BENCH_ADDRESS";
std::string own_address();

/// Texts that ranks tell each other by files in a folder.
class Notes {
 public:
  explicit Notes(std::string folder) : folder_(std::move(folder)) {}

  void write(const std::string& name, const std::string& text) const;
  /// Waits until the note is there. Throws timeout.
  std::string read(const std::string& name) const;

 private:
  std::string folder_;
};

/// Begins to connect a chip to `peers`, which are device ids.
std::unique_ptr<Wires> connect(bool is_ucx, int chip, const std::vector<int>& peers,
                               const Notes& notes);

}  // namespace weft::bench
