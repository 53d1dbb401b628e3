#include "actors/job/launch_mesh.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr const char* kVariable = "WEFT_LAUNCH_MESH";

[[noreturn]] void refuse(const char* text) {
  fail(Errc::invalid_argument,
       "{} = \"{}\": expected axes with their sizes, such as data=4 or data=2,model=2", kVariable,
       text);
}

}  // namespace

void apply_launch_mesh(SpmdConfig& spmd) {
  const char* text = std::getenv(kVariable);
  if (text == nullptr) return;
  SpmdConfig asked{.partitioning_mode = spmd.partitioning_mode};
  std::string_view rest(text);
  for (bool more = true; more;) {
    const auto comma = rest.find(',');
    const std::string_view axis = rest.substr(0, comma);
    more = comma != rest.npos;
    if (more) rest.remove_prefix(comma + 1);
    const auto equals = axis.find('=');
    if (equals == 0 || equals == axis.npos) refuse(text);
    const std::string_view digits = axis.substr(equals + 1);
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    if (error != std::errc{} || end != digits.data() + digits.size() || size < 1) refuse(text);
    asked.axis_names.emplace_back(axis.substr(0, equals));
    asked.mesh_shape.push_back(size);
  }
  spmd = asked;
}

}  // namespace weft
