#pragma once
/// PartitionSpec: for each dim of a tensor, the mesh axes that shard it
/// (jax.sharding.PartitionSpec).

#include <array>
#include <cstddef>
#include <initializer_list>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weft/atom.hpp>
#include <weft/error.hpp>

namespace weft {

/// The axes of one dim, major to minor; {} is not sharded.
class AxisNames {
 public:
  AxisNames() = default;
  AxisNames(const char* axis) : names_{axis} {}             // NOLINT(google-explicit-constructor)
  AxisNames(std::string axis) : names_{std::move(axis)} {}  // NOLINT(google-explicit-constructor)
  AxisNames(std::initializer_list<std::string_view> axes) : names_(axes.begin(), axes.end()) {}

  const std::vector<std::string>& names() const { return names_; }
  bool empty() const { return names_.empty(); }

  friend bool operator==(const AxisNames&, const AxisNames&) = default;

 private:
  std::vector<std::string> names_;
};

/// `{{"data"}, {}}` shards dim 0 of two over axis "data"; `{{"data", "model"}, {}}` shards it over
/// both axes. A tensor of one dim needs the inner braces too: `{{"data", "model"}}`.
class PartitionSpec {
 public:
  PartitionSpec() = default;
  PartitionSpec(std::initializer_list<AxisNames> dims) : dims_(dims) {}
  explicit PartitionSpec(std::vector<AxisNames> dims) : dims_(std::move(dims)) {}

  /// Nothing sharded, for a tensor of `num_dims` dims.
  static PartitionSpec replicated(int num_dims) {
    return PartitionSpec(std::vector<AxisNames>(static_cast<std::size_t>(num_dims)));
  }

  const std::vector<AxisNames>& dims() const { return dims_; }
  int num_dims() const { return static_cast<int>(dims_.size()); }
  /// As it is written in code: `{{"data"}, {}}`.
  std::string to_string() const;

  friend bool operator==(const PartitionSpec&, const PartitionSpec&) = default;

 private:
  std::vector<AxisNames> dims_;
};

// Axes: names of mesh axes, as a call takes them.

/// A list in braces, or any range of strings. The strings must outlive the call.
class Axes {
 public:
  /// Throws invalid_argument for more names than a mesh can have axes of size 2 or more.
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
