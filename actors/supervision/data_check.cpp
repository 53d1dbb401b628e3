#include "actors/supervision/data_check.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft {
namespace {

using Workers = std::vector<int>;
using Sides = std::map<int, std::optional<std::uint64_t>>;  // hash by worker; nothing if the worker
                                                            // didn't upload

constexpr const char* kAdvice =
    "data, parameters and scalars are global: each worker uploads only the part of its copy "
    "that its chips hold, and the rest is lost; give every worker the same values (all rows of "
    "the batch, a shuffle by ctx.seed() and ctx.step()), set and load state in every worker, "
    "or pass each worker's own rows to to_device_local(); WEFT_CHECK_DATA=0 turns this check off";

constexpr const char* kDatasetAdvice =
    "a dataset is global: each worker reads only the items of its chips, and the items must be "
    "the same in every worker; open the same files in each worker, and let an item depend only "
    "on its index, epoch and seed; WEFT_CHECK_DATA=0 turns this check off";

bool is_item(const std::string& label) { return label.find(DataHashes::kOfDataset) != label.npos; }

/// Returns a text such as "worker 1" or "workers 0, 2".
std::string name(const Workers& workers) {
  return fmt::format("worker{} {}", workers.size() == 1 ? "" : "s", fmt::join(workers, ", "));
}

/// Groups the workers by hash; each group is a side. The largest side comes first. Of two sides
/// with the same size, the one with the lower worker comes first.
std::vector<Workers> sides_of(const Sides& hashes) {
  std::map<std::optional<std::uint64_t>, Workers> by_hash;
  for (const auto& [worker, hash] : hashes) by_hash[hash].push_back(worker);
  std::vector<Workers> sides;
  for (auto& [hash, workers] : by_hash) sides.push_back(std::move(workers));
  std::ranges::sort(sides, [](const Workers& a, const Workers& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  return sides;
}

/// Returns the key under which the workers' hashes are compared. The key of state is its name and
/// type, because its line may differ between workers. The key of an item is its place in the
/// loader, because the dataset's name may differ.
std::string key_of(const DataHashes& hashes, std::size_t i) {
  const std::string& label = hashes.tensors[i];
  return i < hashes.num_states ? label.substr(0, label.rfind(" ("))
                               : label.substr(0, label.find(DataHashes::kOfDataset));
}

}  // namespace

std::optional<ReplicaFault> DataCheck::add(const DataHashes& hashes) {
  if (hashes.worker < 0 || hashes.worker >= num_workers_ ||
      hashes.hashes.size() != hashes.tensors.size() || hashes.num_states > hashes.tensors.size()) {
    return ReplicaFault{
        .step = hashes.step,
        .message = fmt::format("worker {} sent {} hashes of {} tensors at step {}", hashes.worker,
                               hashes.hashes.size(), hashes.tensors.size(), hashes.step),
        .code = Errc::corrupt};
  }
  runs_[hashes.run].insert_or_assign(hashes.worker, hashes);
  return came_to(hashes.worker, hashes.run);
}

std::optional<ReplicaFault> DataCheck::ended(int worker) {
  return came_to(worker, std::numeric_limits<std::uint64_t>::max());
}

/// Records that the worker has reached `run`, and compares the runs that all workers have reached.
std::optional<ReplicaFault> DataCheck::came_to(int worker, std::uint64_t run) {
  last_runs_[worker] = run;
  if (static_cast<int>(last_runs_.size()) < num_workers_) return {};
  std::uint64_t least = run;
  for (const auto& [each, last] : last_runs_) least = std::min(least, last);
  while (!runs_.empty() && runs_.begin()->first <= least) {
    const Told told = std::move(runs_.begin()->second);
    runs_.erase(runs_.begin());
    if (auto fault = compare(told)) return fault;
  }
  return {};
}

/// Returns the first difference in the uploads for one run. A worker that has data on its chips
/// already doesn't upload it, so data is compared only among the workers that upload it. State must
/// be uploaded by all workers or by none.
std::optional<ReplicaFault> DataCheck::compare(const Told& told) const {
  std::map<std::string, Sides> tensors;
  std::vector<std::pair<std::string, std::string>> order;  // keys with labels, in order
  std::set<std::string> states;
  for (const auto& [worker, hashes] : told) {
    for (std::size_t i = 0; i < hashes.tensors.size(); ++i) {
      const std::string key = key_of(hashes, i);
      auto& by_worker = tensors[key];
      if (by_worker.empty()) order.emplace_back(key, hashes.tensors[i]);
      if (i < hashes.num_states) states.insert(key);
      by_worker.emplace(worker, hashes.hashes[i]);
    }
  }
  std::optional<ReplicaFault> fault;
  int others = 0;
  for (const auto& [key, label] : order) {
    auto& by_worker = tensors.at(key);
    const bool is_state = states.contains(key);
    for (int worker = 0; is_state && worker < num_workers_; ++worker) {
      by_worker.emplace(worker, std::nullopt);
    }
    const std::vector<Workers> sides = sides_of(by_worker);
    if (sides.size() == 1) continue;
    if (fault) {
      ++others;
      continue;
    }
    std::vector<std::string> names;
    for (const Workers& side : sides) {
      const bool is_set = by_worker.at(side.front()).has_value();
      names.push_back(name(side) + (is_set ? "" : " (not set)"));
    }
    const std::uint64_t step = told.begin()->second.step;
    fault = ReplicaFault{
        .step = step,
        .message = fmt::format("at step {} {} isn't {}the same in every worker: {}", step, label,
                               is_state ? "set to " : "", fmt::join(names, " against ")),
        .code = Errc::invalid_argument};
    const bool one_is_odd = sides.size() == 2 && sides[0].size() > 1 && sides[1].size() == 1;
    if (one_is_odd) fault->worker = sides[1].front();
  }
  if (!fault) return {};
  if (others > 0) {
    fault->message += fmt::format(" ({} other input{} too)", others, others == 1 ? "" : "s");
  }
  fault->message += fmt::format("; {}", is_item(fault->message) ? kDatasetAdvice : kAdvice);
  return fault;
}

}  // namespace weft
