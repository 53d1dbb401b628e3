#include "tools/weft/tensor_choice.hpp"

#include <algorithm>

#include <weft/tensor/error.hpp>

#include "spmd/program/element.hpp"

namespace weft {
namespace {

/// The maximum length of a name, because std::regex recurses for each letter.
constexpr std::size_t kNameBytesMax = 4096;

std::regex compiled(const std::string& option, const std::string& pattern) {
  try {
    return std::regex(pattern, std::regex::ECMAScript);
  } catch (const std::regex_error& error) {
    fail(Errc::invalid_argument, "{} \"{}\" isn't a regular expression: {}", option, pattern,
         error.what());
  }
}

void require_short(const std::string& name) {
  if (name.size() <= kNameBytesMax) return;
  fail(Errc::invalid_argument,
       "a tensor's name has {} bytes: --filter and --rename take names of up to {}", name.size(),
       kNameBytesMax);
}

}  // namespace

void TensorChoice::add_options(CLI::App& command) {
  command
      .add_option("--filter", filter_options_,
                  "only tensors whose names contain a match of this regular expression; may be "
                  "repeated")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  command
      .add_option("--rename", rename_options_,
                  "replace the text that the regular expression matches in names; may be "
                  "repeated, and each works on the result of the one before: '^model\\.=' "
                  "removes a prefix")
      ->type_name("PATTERN=TEXT")
      ->allow_extra_args(false);
  command.add_option("--cast", cast_option_, "convert floating-point tensors to this dtype")
      ->check(CLI::IsMember({"f16", "bf16", "f32", "f64"}))
      ->type_name("DTYPE");
}

void TensorChoice::prepare() {
  for (const std::string& pattern : filter_options_) {
    filters_.push_back(compiled("--filter", pattern));
  }
  for (const std::string& option : rename_options_) {
    const std::size_t middle = option.rfind('=');
    if (middle == std::string::npos) {
      fail(Errc::invalid_argument, "--rename \"{}\": expected PATTERN=TEXT, such as '^model\\.='",
           option);
    }
    renames_.emplace_back(compiled("--rename", option.substr(0, middle)),
                          option.substr(middle + 1));
  }
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    if (to_string(dtype) == cast_option_) cast_ = dtype;
  }
}

bool TensorChoice::takes(const std::string& name) const {
  if (filters_.empty()) return true;
  require_short(name);
  return std::ranges::any_of(
      filters_, [&](const std::regex& filter) { return std::regex_search(name, filter); });
}

std::string TensorChoice::rename(const std::string& name) {
  std::string renamed = name;
  for (const auto& [pattern, text] : renames_) {
    require_short(renamed);
    renamed = std::regex_replace(renamed, pattern, text);
  }
  if (renamed.empty()) {
    fail(Errc::invalid_argument, "--rename makes the name '{}' empty", name);
  }
  const auto [given, is_new] = given_.emplace(renamed, name);
  if (!is_new) {
    fail(Errc::invalid_argument,
         "'{}' and '{}' would both be named '{}': change --rename, or leave "
         "one of them out by --filter",
         given->second, name, renamed);
  }
  return renamed;
}

DType TensorChoice::cast(DType dtype) const { return cast_ && is_floating(dtype) ? *cast_ : dtype; }

std::vector<std::byte> cast_elements(std::vector<std::byte> elements, DType from, DType to) {
  if (from == to) return elements;
  const auto from_bytes = static_cast<std::size_t>(byte_size(from));
  const auto to_bytes = static_cast<std::size_t>(byte_size(to));
  const std::size_t count = elements.size() / from_bytes;
  std::vector<std::byte> converted(count * to_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    store_element(to, load_element(from, elements.data() + i * from_bytes),
                  converted.data() + i * to_bytes);
  }
  return converted;
}

}  // namespace weft
