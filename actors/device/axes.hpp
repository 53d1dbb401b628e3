#pragma once
/// Axes: names of mesh axes, as a call takes them.

#include <array>
#include <cstddef>
#include <initializer_list>
#include <ranges>
#include <span>
#include <string_view>

#include <weft/spmd/error.hpp>
#include <weft/spmd/mesh/atom.hpp>

namespace weft {

/// A list in braces, or any range of strings, which must stay until the call returns.
class Axes {
 public:
  /// Throws invalid_argument for more names than any mesh has axes to cut along.
  Axes(std::initializer_list<std::string_view> names) {  // NOLINT(google-explicit-constructor)
    for (const std::string_view name : names) add(name);
  }
  template <std::ranges::input_range Names>
  requires std::convertible_to<std::ranges::range_reference_t<Names>, std::string_view> Axes(
      const Names& names) {  // NOLINT(google-explicit-constructor)
    for (const auto& name : names) add(name);
  }

  std::span<const std::string_view> names() const { return {names_.data(), size_}; }

 private:
  void add(std::string_view name) {
    if (size_ == names_.size()) {
      fail(Errc::invalid_argument, "axes: more than {} names", names_.size());
    }
    names_[size_++] = name;
  }

  std::array<std::string_view, kAtomCountMax> names_;
  std::size_t size_ = 0;
};

}  // namespace weft
