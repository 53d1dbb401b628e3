#include "spmd/base/same_secret.hpp"

namespace weft {

bool same_secret(std::string_view given, std::string_view expected) noexcept {
  unsigned difference = given.size() == expected.size() ? 0 : 1;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const char byte = i < given.size() ? given[i] : '\0';
    difference |= static_cast<unsigned char>(expected[i]) ^ static_cast<unsigned char>(byte);
  }
  return difference == 0;
}

}  // namespace weft
