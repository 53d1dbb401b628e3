#pragma once
/// Tensors in structures, as lists and back (JAX's pytrees).

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <weft/tensor.hpp>

namespace weft {
namespace tensor_tree_detail {

template <typename T>
concept TensorLike = std::derived_from<T, Tensor>;
template <typename T>
concept Vector = requires(T& list) {
  typename T::value_type;
  list.resize(1);
  list.begin();
};
template <typename T>
concept Tuple = requires {
  std::tuple_size<T>::value;
};

/// Converts to what any field of a struct may be.
struct Anything {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};

inline constexpr std::size_t kFieldCountMax = 8;

/// How many fields a struct has: the most values that it can be initialized with.
template <typename T, typename... Fields>
constexpr std::size_t count_fields() {
  if constexpr (sizeof...(Fields) > kFieldCountMax) {
    return sizeof...(Fields);
  } else if constexpr (requires { T{Fields{}..., Anything{}}; }) {
    return count_fields<T, Fields..., Anything>();
  } else {
    return sizeof...(Fields);
  }
}

template <typename T, typename Visit>
void visit_fields(T& value, const Visit& visit) {
  constexpr std::size_t kCount = count_fields<std::remove_const_t<T>>();
  static_assert(std::is_aggregate_v<std::remove_const_t<T>> && kCount <= kFieldCountMax,
                "a tree of tensors is a Tensor, a vector, pair or tuple of trees, or a struct of "
                "at most 8 of them");
  const auto all = [&](auto&... field) { (visit(field), ...); };
  if constexpr (kCount == 1) {
    auto& [a] = value;
    all(a);
  } else if constexpr (kCount == 2) {
    auto& [a, b] = value;
    all(a, b);
  } else if constexpr (kCount == 3) {
    auto& [a, b, c] = value;
    all(a, b, c);
  } else if constexpr (kCount == 4) {
    auto& [a, b, c, d] = value;
    all(a, b, c, d);
  } else if constexpr (kCount == 5) {
    auto& [a, b, c, d, e] = value;
    all(a, b, c, d, e);
  } else if constexpr (kCount == 6) {
    auto& [a, b, c, d, e, f] = value;
    all(a, b, c, d, e, f);
  } else if constexpr (kCount == 7) {
    auto& [a, b, c, d, e, f, g] = value;
    all(a, b, c, d, e, f, g);
  } else if constexpr (kCount == 8) {
    auto& [a, b, c, d, e, f, g, h] = value;
    all(a, b, c, d, e, f, g, h);
  }
}

/// Calls `visit` for each tensor of the tree, in order.
template <typename Tree, typename Visit>
void visit_tensors(Tree& tree, const Visit& visit) {
  using T = std::remove_const_t<Tree>;
  const auto inner = [&](auto& part) { visit_tensors(part, visit); };
  if constexpr (TensorLike<T>) {
    visit(tree);
  } else if constexpr (Vector<T>) {
    for (auto& part : tree) inner(part);
  } else if constexpr (Tuple<T>) {
    std::apply([&](auto&... part) { (inner(part), ...); }, tree);
  } else {
    visit_fields(tree, inner);
  }
}

}  // namespace tensor_tree_detail

/// The type of a tree with other tensors: of a Parameter or a Scalar, Tensor.
template <typename Tree>
using TreeOf = std::conditional_t<std::derived_from<Tree, Tensor>, Tensor, Tree>;

/// The tensors of a Tensor, a vector, pair or tuple of trees, or a struct of up to eight trees.
template <typename Tree>
std::vector<Tensor> tensors_of(const Tree& tree) {
  std::vector<Tensor> tensors;
  tensor_tree_detail::visit_tensors(tree, [&](const Tensor& tensor) { tensors.push_back(tensor); });
  return tensors;
}

/// The tree with these tensors in the place of its own, which are as many.
template <typename Tree>
Tree with_tensors(Tree tree, const std::vector<Tensor>& tensors) {
  auto next = tensors.begin();
  tensor_tree_detail::visit_tensors(tree, [&](Tensor& tensor) { tensor = *next++; });
  return tree;
}

}  // namespace weft
