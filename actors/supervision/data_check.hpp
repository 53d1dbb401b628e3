#pragma once
/// DataCheck: compares the data and state that workers upload to their chips for the same run. It
/// does no I/O.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <weft/tensor/error.hpp>

#include "actors/protocol/protocol.hpp"

namespace weft {

/// The first difference between workers that must have the same data.
struct ReplicaFault {
  std::uint64_t step = 0;
  int worker = -1;  ///< the only worker that differs from the majority; -1 if there isn't exactly
                    ///< one
  std::string message{};
  Errc code = Errc::corrupt;
};

/// Compares a run when all workers have sent their hashes for it or have begun a later run. In a
/// generation each worker sends the hashes of its runs in order, so the difference that is found
/// first is also the one that happened first.
class DataCheck {
 public:
  explicit DataCheck(int num_workers) : num_workers_(num_workers) {}

  /// Drops the hashes of the previous generation, because the next generation makes those runs
  /// again.
  void forget() {
    runs_.clear();
    last_runs_.clear();
  }
  /// Adds a worker's hashes. Returns a fault if workers differ, or if the message is malformed, for
  /// example if it has a hash without a tensor.
  std::optional<ReplicaFault> add(const DataHashes& hashes);
  /// Records that the worker's loop has ended and will send no more hashes.
  std::optional<ReplicaFault> ended(int worker);

 private:
  using Told = std::map<int, DataHashes>;  // by worker
  std::optional<ReplicaFault> came_to(int worker, std::uint64_t run);
  std::optional<ReplicaFault> compare(const Told& told) const;

  int num_workers_;
  std::map<std::uint64_t, Told> runs_;
  std::map<int, std::uint64_t> last_runs_;  // by worker
};

}  // namespace weft
