#include "transport/format/state_kind.hpp"

#include <array>

#include <weft/tensor/error.hpp>

namespace weft {

std::string_view to_string(StateKind kind) noexcept {
  constexpr std::array<std::string_view, 3> kNames{"param", "opt_state", "buffer"};
  return kNames[static_cast<std::size_t>(kind)];
}

StateKind state_kind(InputKind kind) {
  WEFT_CHECK(is_state(kind), to_string(kind));
  if (kind == InputKind::param) return StateKind::param;
  return kind == InputKind::opt_state ? StateKind::opt_state : StateKind::buffer;
}

}  // namespace weft
