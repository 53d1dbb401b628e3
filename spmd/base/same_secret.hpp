#pragma once
/// Compares secrets, such as the tokens of jobs and of web pages.

#include <string_view>

namespace weft {

/// Returns whether the two texts are equal. The time depends only on the length of `expected`, so
/// an attacker can't measure at which character the texts differ.
bool same_secret(std::string_view given, std::string_view expected) noexcept;

}  // namespace weft
