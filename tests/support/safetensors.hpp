#pragma once
/// Reads the safetensors files of tests/golden/torch/, which make.py there describes.

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>
#include <weft/tensor/type.hpp>

#include "tests/support/golden.hpp"

namespace weft::testing {

/// The f32 and i32 tensors of a file, by name.
class Safetensors {
 public:
  explicit Safetensors(std::string_view golden) : bytes_(read_golden(golden)) {
    std::uint64_t header_size = 0;
    std::memcpy(&header_size, bytes_.data(), sizeof(header_size));
    begin_ = sizeof(header_size) + header_size;
    header_ = nlohmann::json::parse(bytes_.substr(sizeof(header_size), header_size));
  }

  bool contains(const std::string& name) const { return header_.contains(name); }
  /// Returns the names that begin with `prefix`, without the prefix.
  std::vector<std::string> names(std::string_view prefix) const {
    std::vector<std::string> found;
    for (const auto& [name, entry] : header_.items()) {
      if (name.starts_with(prefix)) found.push_back(name.substr(prefix.size()));
    }
    return found;
  }
  TensorType type(const std::string& name) const {
    const auto sizes = entry(name).at("shape").get<std::vector<std::int64_t>>();
    return {entry(name).at("dtype") == "F32" ? DType::f32 : DType::i32, Shape(sizes)};
  }
  /// Returns the elements in row-major order; `Element` must match the tensor's type.
  template <typename Element>
  std::vector<Element> elements(const std::string& name) const {
    std::vector<Element> elements(static_cast<std::size_t>(type(name).num_elements()));
    const auto offset = entry(name).at("data_offsets").at(0).get<std::size_t>();
    std::memcpy(elements.data(), bytes_.data() + begin_ + offset,
                elements.size() * sizeof(Element));
    return elements;
  }

 private:
  const nlohmann::json& entry(const std::string& name) const {
    if (!contains(name)) fail(Errc::not_found, "the golden file has no tensor '{}'", name);
    return header_.at(name);
  }

  std::string bytes_;
  nlohmann::json header_;
  std::size_t begin_ = 0;  // the offset of the elements in the file
};

}  // namespace weft::testing
