#include <weft/sharding/partition_spec.hpp>

namespace weft {

std::string PartitionSpec::to_string() const {
  std::string text = "{";
  for (std::size_t dim = 0; dim < dims_.size(); ++dim) {
    text += dim == 0 ? "{" : ", {";
    const std::vector<std::string>& names = dims_[dim].names();
    for (std::size_t i = 0; i < names.size(); ++i) {
      text += (i == 0 ? "\"" : ", \"") + names[i] + '"';
    }
    text += '}';
  }
  return text + '}';
}

}  // namespace weft
