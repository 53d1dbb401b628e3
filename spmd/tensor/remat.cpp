#include <weft/transforms.hpp>

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
