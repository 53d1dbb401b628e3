#pragma once
/// DataCheck: compares the data that workers upload to their chips for the same run. Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <weft/error.hpp>

#include "actors/protocol/protocol.hpp"

namespace weft {

/// The first difference between workers that must have the same.
struct ReplicaFault {
  std::uint64_t step = 0;
  int worker = -1;  ///< the only one that differs from the majority; -1 if there is no such worker
  std::string message{};
  Errc code = Errc::corrupt;
};

/// A run is compared when all workers have sent their hashes for it. In a generation each worker
/// sends the hashes of its runs in order, so the first difference found is the first one.
class DataCheck {
 public:
  explicit DataCheck(int num_workers) : num_workers_(num_workers) {}

  /// Hashes of the generation before are dropped: the runs that they belong to are made again.
  void forget() { runs_.clear(); }
  /// A malformed message, such as one with a hash but no tensor, is a fault too.
  std::optional<ReplicaFault> add(const DataHashes& hashes);

 private:
  std::optional<ReplicaFault> compare(const std::map<int, DataHashes>& told) const;

  int num_workers_;
  std::map<std::uint64_t, std::map<int, DataHashes>> runs_;  // by run and worker
};

}  // namespace weft
