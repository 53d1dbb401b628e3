#include "actors/job/launch_mesh.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr const char* kVariable = "WEFT_LAUNCH_MESH";

[[noreturn]] void refuse(const char* text) {
  fail(Errc::invalid_argument,
       "{} = \"{}\": expected axes with their sizes, such as data=4 or data=2,model=2; data=2x4 "
       "means 2 hosts of 4 chips each",
       kVariable, text);
}

/// Reads a size such as "4", or "2x4" for 2 hosts with 4 chips each. Returns false for any other
/// text.
bool read_size(std::string_view text, std::int64_t& hosts, std::int64_t& chips) {
  const auto read = [](std::string_view digits, std::int64_t& size) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    return error == std::errc{} && end == digits.data() + digits.size() && size >= 1;
  };
  const auto x = text.find('x');
  hosts = 1;
  if (x == text.npos) return read(text, chips);
  return read(text.substr(0, x), hosts) && read(text.substr(x + 1), chips);
}

}  // namespace

void apply_launch_mesh(SpmdConfig& spmd) {
  const char* text = std::getenv(kVariable);
  if (text == nullptr) return;
  SpmdConfig asked{.partitioning_mode = spmd.partitioning_mode};
  HybridMesh hybrid;
  std::string_view rest(text);
  for (bool more = true; more;) {
    const auto comma = rest.find(',');
    const std::string_view axis = rest.substr(0, comma);
    more = comma != rest.npos;
    if (more) rest.remove_prefix(comma + 1);
    const auto equals = axis.find('=');
    if (equals == 0 || equals == axis.npos) refuse(text);
    std::int64_t hosts = 0;
    std::int64_t chips = 0;
    if (!read_size(axis.substr(equals + 1), hosts, chips)) refuse(text);
    hybrid.axis_names.emplace_back(axis.substr(0, equals));
    hybrid.dcn.push_back(hosts);
    hybrid.ici.push_back(chips);
  }
  if (std::ranges::all_of(hybrid.dcn, [](std::int64_t hosts) { return hosts == 1; })) {
    asked.mesh_shape = std::move(hybrid.ici);
    asked.axis_names = std::move(hybrid.axis_names);
  } else {
    asked.hybrid = std::move(hybrid);
  }
  spmd = asked;
}

}  // namespace weft
