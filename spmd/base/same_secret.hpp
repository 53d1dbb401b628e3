#pragma once
/// Comparison of secrets: tokens of jobs and of pages.

#include <string_view>

namespace weft {

/// Compares in a time that depends on the length of `expected` alone, so that it doesn't tell where
/// the two differ.
bool same_secret(std::string_view given, std::string_view expected) noexcept;

}  // namespace weft
