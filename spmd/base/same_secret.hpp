#pragma once
/// Compares secrets, such as the tokens of jobs and of web pages.

#include <string_view>

namespace weft {

/// Returns whether the two texts are equal. The time depends on the length of `expected` alone, so
/// an attacker can't measure at which character they differ.
bool same_secret(std::string_view given, std::string_view expected) noexcept;

}  // namespace weft
