#pragma once
/// Overloaded: combines lambdas to a visitor for std::visit.

namespace weft {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace weft
