#include <weft/nn/host_number.hpp>

#include <span>

#include "spmd/tensor/tensor_source.hpp"

namespace weft {

HostNumber::HostNumber(std::string name, double first, std::source_location loc)
    : state_(make_buffer(std::move(name), first, {}, DType::f64)) {
  put_in_place(state_, loc);
}

double HostNumber::value(std::source_location loc) const {
  put_in_place(state_, loc);  // load() may have given the state another source
  return state_.item(loc);
}

void HostNumber::set(double value, std::source_location loc) {
  set_elements(state_, std::as_bytes(std::span(&value, 1)), loc);
}

}  // namespace weft
