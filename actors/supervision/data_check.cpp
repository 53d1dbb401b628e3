#include "actors/supervision/data_check.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft {
namespace {

using Workers = std::vector<int>;

constexpr const char* kAdvice =
    "data, parameters and scalars are global: of its own copy each worker uploads only what its "
    "chips hold, and the rest is lost; give every worker the same (all rows of the batch, a "
    "shuffle by ctx.seed() and ctx.step()), or give each worker's own rows to to_device_local(); "
    "WEFT_CHECK_DATA=0 leaves this check out";

/// "worker 1", "workers 0, 2".
std::string name(const Workers& workers) {
  return fmt::format("worker{} {}", workers.size() == 1 ? "" : "s", fmt::join(workers, ", "));
}

/// A side is all workers with the same hash. The largest side first; of sides of one size the one
/// with the lowest worker.
std::vector<Workers> sides_of(const std::map<int, std::uint64_t>& hashes) {
  std::map<std::uint64_t, Workers> by_hash;
  for (const auto& [worker, hash] : hashes) by_hash[hash].push_back(worker);
  std::vector<Workers> sides;
  for (auto& [hash, workers] : by_hash) sides.push_back(std::move(workers));
  std::ranges::sort(sides, [](const Workers& a, const Workers& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  return sides;
}

}  // namespace

std::optional<ReplicaFault> DataCheck::add(const DataHashes& hashes) {
  if (hashes.worker < 0 || hashes.worker >= num_workers_ ||
      hashes.hashes.size() != hashes.tensors.size()) {
    return ReplicaFault{
        .step = hashes.step,
        .message = fmt::format("worker {} sent {} hashes of {} tensors at step {}", hashes.worker,
                               hashes.hashes.size(), hashes.tensors.size(), hashes.step),
        .code = Errc::corrupt};
  }
  auto& told = runs_[hashes.run];
  told.insert_or_assign(hashes.worker, hashes);
  if (static_cast<int>(told.size()) < num_workers_) return {};
  auto fault = compare(told);
  runs_.erase(hashes.run);
  return fault;
}

/// A tensor that only some workers upload, because the others have it on their chips already, is
/// compared among the workers that upload it.
std::optional<ReplicaFault> DataCheck::compare(const std::map<int, DataHashes>& told) const {
  std::map<std::string, std::map<int, std::uint64_t>> tensors;
  std::vector<std::string> order;
  for (const auto& [worker, hashes] : told) {
    for (std::size_t i = 0; i < hashes.tensors.size(); ++i) {
      auto& by_worker = tensors[hashes.tensors[i]];
      if (by_worker.empty()) order.push_back(hashes.tensors[i]);
      by_worker.emplace(worker, hashes.hashes[i]);
    }
  }
  std::optional<ReplicaFault> fault;
  int others = 0;
  for (const std::string& tensor : order) {
    const std::vector<Workers> sides = sides_of(tensors.at(tensor));
    if (sides.size() == 1) continue;
    if (fault) {
      ++others;
      continue;
    }
    std::vector<std::string> names;
    for (const Workers& side : sides) names.push_back(name(side));
    const std::uint64_t step = told.begin()->second.step;
    fault = ReplicaFault{.step = step,
                         .message = fmt::format("at step {} {} isn't the same in every worker: {}",
                                                step, tensor, fmt::join(names, " against ")),
                         .code = Errc::invalid_argument};
    const bool one_is_odd = sides.size() == 2 && sides[0].size() > 1 && sides[1].size() == 1;
    if (one_is_odd) fault->worker = sides[1].front();
  }
  if (!fault) return {};
  if (others > 0) {
    fault->message += fmt::format(" ({} other input{} too)", others, others == 1 ? "" : "s");
  }
  fault->message += fmt::format("; {}", kAdvice);
  return fault;
}

}  // namespace weft
