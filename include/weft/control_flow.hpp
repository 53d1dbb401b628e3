#pragma once
/// Loops that are one part of a program, however many iterations they have (jax.lax.scan). A C++
/// loop over tensor calls records each iteration instead.

#include <cstdint>
#include <functional>
#include <source_location>
#include <span>
#include <utility>
#include <vector>

#include <weft/tensor.hpp>
#include <weft/tensor_tree.hpp>

namespace weft {

struct ScanOptions {
  bool reverse = false;     ///< from the last item to the first
  std::int64_t length = 0;  ///< number of iterations; 0: that of the items
};

template <typename Carry, typename Stacked>
struct Scanned {
  Carry carry;      ///< the last one
  Stacked stacked;  ///< the ys of all iterations, each tensor behind a new dim 0
};

/// What scan() records, on lists.
using ScanBody = std::function<Scanned<std::vector<Tensor>, std::vector<Tensor>>(
    const std::vector<Tensor>& carry, const std::vector<Tensor>& items)>;
Scanned<std::vector<Tensor>, std::vector<Tensor>> scan_tensors(const ScanBody& body,
                                                               const std::vector<Tensor>& carry,
                                                               const std::vector<Tensor>& items,
                                                               const ScanOptions& options,
                                                               const std::source_location& loc);

/// Iteration i calls fn(carry, item) with item = items[i] (of each tensor, along dim 0) and the
/// carry that iteration i - 1 returned. fn returns a pair: the next carry, and y. The result is
/// the last carry and all ys.
///
///   // A recurrent layer over x[time, batch, features].
///   const auto [last, all] = weft::scan(
///       [&](const Tensor& h, const Tensor& x_t) {
///         const Tensor next = tanh(matmul(x_t, w) + matmul(h, u));
///         return std::pair(next, next);
///       },
///       h0, x);
///
/// Carries, items and ys are a Tensor, a vector, pair or tuple of them, or a struct of up to eight
/// of those (tensor_tree.hpp); std::tuple<>() is none at all. fn runs once, while it is recorded,
/// and may use any other tensor. The time to compile and the size of the program don't depend on
/// the number of iterations, nor does the memory of what fn computes.
///
/// Random numbers differ in each iteration. Throws invalid_argument for items of different sizes in
/// dim 0, and if fn returns a carry of another type, reads a tensor that it computed, or assigns a
/// parameter. Its tensors have no value after it: what is needed later is returned as y.
template <typename Fn, typename First, typename Parts>
auto scan(Fn&& fn, const First& carry, const Parts& items, const ScanOptions& options = {},
          std::source_location loc = std::source_location::current()) {
  using Carry = TreeOf<First>;
  using Items = TreeOf<Parts>;
  using Returned = decltype(fn(std::declval<const Carry&>(), std::declval<const Items&>()));
  using Stacked = TreeOf<std::decay_t<decltype(std::declval<Returned>().second)>>;
  static_assert(
      std::is_same_v<TreeOf<std::decay_t<decltype(std::declval<Returned>().first)>>, Carry>,
      "scan: fn(carry, item) returns a std::pair of the next carry and y, and the next "
      "carry has the type of the first");
  using Tensors = std::vector<Tensor>;
  Stacked stacked;  // of the form of y
  const ScanBody body = [&](const Tensors& carried, const Tensors& parts) {
    Returned returned = fn(with_tensors<Carry>(carry, carried), with_tensors<Items>(items, parts));
    stacked = returned.second;
    return Scanned<Tensors, Tensors>{tensors_of(returned.first), tensors_of(returned.second)};
  };
  const auto made = scan_tensors(body, tensors_of(carry), tensors_of(items), options, loc);
  return Scanned<Carry, Stacked>{with_tensors<Carry>(carry, made.carry),
                                 with_tensors<Stacked>(stacked, made.stacked)};
}

}  // namespace weft
