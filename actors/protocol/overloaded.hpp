#pragma once
/// Overloaded: combines several lambdas into a visitor for std::visit.

namespace weft {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace weft
