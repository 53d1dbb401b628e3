#include "spmd/program/index_check.hpp"

#include <weft/error.hpp>

namespace weft {
namespace {

/// torch's default.
constexpr std::int64_t kTorchIgnored = -100;

}  // namespace

void IndexCheck::refuse(std::int64_t index) const {
  std::string expected = fmt::format("0 to {}", limit - 1);
  if (ignored != 0) expected += fmt::format(", or {}, which is ignored", ignored);
  const bool is_unasked = index == kTorchIgnored && ignored == 0;
  fail(Errc::invalid_argument, "a label or index is {}: expected {}{}{}", index, expected,
       is_unasked ? "; where it marks labels to be left out, say so: cross_entropy(logits, labels, "
                    "{.ignore_index = -100})"
                  : "",
       loc.empty() ? "" : " (at " + loc + ")");
}

}  // namespace weft
