#include <weft/nn/transforms.hpp>

#include <algorithm>
#include <utility>

#include "spmd/tensor/call.hpp"

namespace weft {

bool RematRegions::begin(CheckpointOptions options, OpId next) {
  if (open_) return false;
  open_ = {std::move(options), next};
  return true;
}

void RematRegions::end(OpId next) {
  if (!open_) return;
  const auto [options, begin] = *std::exchange(open_, std::nullopt);
  RematRegion region{.begin = begin, .end = next, .save_dots = options.save_dots};
  for (const std::string& name : options.save_names) {
    const auto found = named_.find(name);
    if (found == named_.end()) continue;
    region.saved.insert(region.saved.end(), found->second.begin(), found->second.end());
  }
  std::ranges::sort(region.saved);
  regions_.push_back(std::move(region));
}

void RematRegions::clear() {
  open_.reset();
  regions_.clear();
  named_.clear();
}

void RematRegions::append(const RematRegions& from, const Appended& appended) {
  const auto moved = [&](const std::vector<ValueId>& values) {
    std::vector<ValueId> result;
    for (const ValueId value : values) {
      if (appended.values[value] != kNoId) result.push_back(appended.values[value]);
    }
    return result;
  };
  for (const RematRegion& region : from.regions_) {
    regions_.push_back({.begin = appended.places[region.begin],
                        .end = appended.places[region.end],
                        .save_dots = region.save_dots,
                        .saved = moved(region.saved)});
  }
  for (const auto& [name, values] : from.named_) {
    const std::vector<ValueId> more = moved(values);
    named_[name].insert(named_[name].end(), more.begin(), more.end());
  }
  if (from.open_) open_ = {from.open_->options, appended.places[from.open_->begin]};
}

CheckpointScope::CheckpointScope(CheckpointOptions options, std::source_location loc)
    : trace_(Trace::current(loc)),
      outermost_(
          trace_.regions().remat.begin(std::move(options), trace_.builder().program().num_ops())) {}

CheckpointScope::~CheckpointScope() {
  if (outermost_) trace_.regions().remat.end(trace_.builder().program().num_ops());
}

Tensor checkpoint_name(const Tensor& x, const std::string& name, std::source_location loc) {
  Call call("checkpoint_name", loc);
  call.trace().regions().remat.name(call.value(x), name);
  return x;
}

}  // namespace weft
