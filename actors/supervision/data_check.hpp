#pragma once
/// DataCheck: compares the data that workers bring to their chips for the same run. Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/protocol/protocol.hpp"
#include "actors/supervision/replica_fault.hpp"

namespace weft {

/// A run is compared when all workers have told of it. In a generation each tells of its runs in
/// order, so what is found first is the first.
class DataCheck {
 public:
  explicit DataCheck(int num_workers) : num_workers_(num_workers) {}

  /// What has come in the generation before is for nothing.
  void forget() { runs_.clear(); }
  /// What doesn't fit together, as a hash without a tensor, is a fault too.
  std::optional<ReplicaFault> add(const DataHashes& hashes);

 private:
  std::optional<ReplicaFault> compare(const std::map<int, DataHashes>& told) const;

  int num_workers_;
  std::map<std::uint64_t, std::map<int, DataHashes>> runs_;  // by run and worker
};

}  // namespace weft
