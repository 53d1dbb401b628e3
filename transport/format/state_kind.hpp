#pragma once
/// StateKind: the kinds of tensors whose values a job keeps from step to step.

#include <cstdint>
#include <string_view>

#include "spmd/program/program.hpp"

namespace weft {

enum class StateKind : std::uint8_t { param, opt_state, buffer };
/// Returns "param", "opt_state" or "buffer".
std::string_view to_string(StateKind kind) noexcept;
/// Converts the kind of a program's input, which must be a kind of state.
StateKind state_kind(InputKind kind);

}  // namespace weft
