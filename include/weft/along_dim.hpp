#pragma once
/// Operations along a dim in which an element's place counts: sorting, elements at given places,
/// running sums. A dim that is sharded is gathered for them. `dim` counts from the end if negative.

#include <cstdint>
#include <source_location>

#include <weft/tensor.hpp>

namespace weft {

/// i32: x[.., order[i], ..] is sorted. Equal elements stay in their order (torch's stable=True); a
/// NaN counts as the largest. Indices have no gradient.
Tensor argsort(Operand x, int dim = -1, bool descending = false);
struct Sorted {
  Tensor values;
  Tensor indices;  ///< i32, of x
};
Sorted sort(Operand x, int dim = -1, bool descending = false);
/// The k largest, or smallest, in order.
Sorted topk(Operand x, std::int64_t k, int dim = -1, bool largest = true);

/// torch.gather, numpy's take_along_axis: result[.., i, ..] = x[.., index[.., i, ..], ..]. index is
/// i32 with x's number of dims, of which those but `dim` may be smaller. An index out of range ends
/// the run; the message has its value and this call's line.
Tensor gather(Operand x, int dim, const Tensor& index);
/// torch.scatter_add: x with source[.., i, ..] added at [.., index[.., i, ..], ..]. index (i32) and
/// source have one shape, that of x but for `dim`. Out of range as in gather.
Tensor scatter_add(Operand x, int dim, const Tensor& index, const Tensor& source);

/// result[i] = x[0] + ... + x[i], or x[0] * ... * x[i], along dim.
Tensor cumsum(Operand x, int dim);
Tensor cumprod(Operand x, int dim);
/// y[i] = a[i] y[i - 1] + b[i] along dim, with y[-1] = 0; a and b are of one type.
Tensor linear_recurrence(Operand a, const Tensor& b, int dim = -1);

/// torch.randperm: the numbers 0 to n - 1, i32, in a random order.
Tensor randperm(std::int64_t n, std::source_location loc = std::source_location::current());
/// torch.multinomial: for each row of the last dim of `weights`, which needn't add up to 1, `count`
/// places (i32), each chosen with the probability that its weight is of their sum. Without
/// replacement no place comes twice, and at least `count` weights of a row must be positive.
Tensor multinomial(Operand weights, std::int64_t count, bool replacement = false);

}  // namespace weft
