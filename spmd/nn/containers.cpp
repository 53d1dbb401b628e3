#include <weft/nn/containers.hpp>

#include <utility>

namespace weft {

Sequential& Sequential::add(Tensor (*function)(Operand)) {
  parts_.push_back(
      [function](const Tensor& x, std::source_location loc) { return function(Operand(x, loc)); });
  return *this;
}

Sequential& Sequential::add(std::function<Tensor(const Tensor&)> function) {
  parts_.push_back([function = std::move(function)](const Tensor& x, std::source_location) {
    return function(x);
  });
  return *this;
}

Tensor Sequential::operator()(const Tensor& x, std::source_location loc) const {
  Tensor y = x;
  for (const auto& part : parts_) y = part(y, loc);
  return y;
}

}  // namespace weft
