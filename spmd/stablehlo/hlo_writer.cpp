#include "spmd/stablehlo/hlo_writer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "spmd/program/element.hpp"
#include "spmd/text/element_text.hpp"

namespace weft {
namespace {

constexpr std::array<std::string_view, kDTypeCount> kElementNames{
    "i1", "i32", "ui32", "i64", "bf16", "f32", "f64", "f16", "i8", "ui8"};

DType dtype_of(std::string_view element) {
  const auto found = std::ranges::find(kElementNames, element);
  return static_cast<DType>(found - kElementNames.begin());
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text = "0x";
  text.reserve(2 + 2 * bytes.size());
  for (const std::byte byte : bytes) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

/// Returns a floating number as text. MLIR reads a decimal number as a double, which it then
/// rounds. If this doesn't give the same bits, the text is the bits in hexadecimal.
std::string floating_text(DType dtype, std::array<std::byte, 8> bits) {
  const auto size = static_cast<std::size_t>(byte_size(dtype));
  if (std::isfinite(load_element(dtype, bits.data()))) {
    std::string text = element_text(dtype, bits.data());
    double read = 0;
    std::from_chars(text.data(), text.data() + text.size(), read);
    std::array<std::byte, 8> again{};
    store_element(dtype, read, again.data());
    if (text.find('.') == std::string::npos) {
      text.insert(std::min(text.find('e'), text.size()), ".0");
    }
    if (again == bits) return text;
  }
  std::ranges::reverse(std::span(bits).first(size));  // the most significant byte comes first
  return hex(std::span(bits).first(size));
}

/// Returns an element for dense<>. Rounds or saturates a value that the element type can't
/// represent.
std::string number_text(std::string_view element, double value) {
  if (element == "i1") return value != 0 ? "true" : "false";
  if (element == "ui64") return fmt::format("{:.0f}", value);
  const DType dtype = dtype_of(element);
  std::array<std::byte, 8> bits{};
  store_element(dtype, value, bits.data());
  return weft::is_floating(dtype) ? floating_text(dtype, bits) : element_text(dtype, bits.data());
}

std::string names_of(const HloWriter::Values& values) {
  std::string text;
  for (const HloValue& value : values) text += (text.empty() ? "" : ", ") + value.name;
  return text;
}

template <typename Values, typename Type>
std::string types_of(const Values& values, Type type) {
  std::string text;
  for (const auto& value : values) text += (text.empty() ? "" : ", ") + type(value).text();
  return text;
}

}  // namespace

std::string HloType::text() const {
  std::string text = "tensor<";
  for (const std::int64_t dim : dims) text += std::to_string(dim) + "x";
  return text.append(element) + ">";
}

std::int64_t HloType::num_elements() const {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  return count;
}

std::string_view element_name(DType dtype) {
  return kElementNames[static_cast<std::size_t>(dtype)];
}

HloType hlo_type(const TensorType& type) {
  return {element_name(type.dtype), HloDims(type.shape.begin(), type.shape.end())};
}

std::string hlo_array(std::span<const std::int64_t> numbers) {
  if (numbers.empty()) return "array<i64>";
  return fmt::format("array<i64: {}>", fmt::join(numbers, ", "));
}

std::string hlo_rows(std::span<const HloDims> rows) {
  std::string text;
  for (const HloDims& row : rows) {
    text += fmt::format("{}[{}]", text.empty() ? "" : ", ", fmt::join(row, ", "));
  }
  return fmt::format("dense<[{}]> : tensor<{}x{}xi64>", text, rows.size(), rows[0].size());
}

std::string hlo_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const bool is_plain = c >= ' ' && c <= '~' && c != '"' && c != '\\';
    result += is_plain ? std::string(1, c) : fmt::format("\\{:02X}", static_cast<unsigned char>(c));
  }
  return result + "\"";
}

void HloWriter::set_location(std::string_view file_line) {
  location_ = file_line.empty() ? "" : fmt::format(" loc({})", hlo_quoted(file_line));
}

HloWriter::Values HloWriter::ops(std::string_view kind, const Values& operands,
                                 const std::vector<HloType>& types, const std::string& attributes,
                                 const std::vector<std::string>& regions) {
  const std::string name = fmt::format("%{}", next_++);
  Values results;
  for (std::size_t i = 0; i < types.size(); ++i) {
    results.push_back({types.size() == 1 ? name : fmt::format("{}#{}", name, i), types[i]});
  }
  const bool has_dialect = kind.find('.') != std::string_view::npos;
  text_ += fmt::format("{}{}{} = \"{}{}\"({})", indent(), name,
                       types.size() == 1 ? "" : fmt::format(":{}", types.size()),
                       has_dialect ? "" : "stablehlo.", kind, names_of(operands));
  if (!regions.empty()) text_ += fmt::format(" ({})", fmt::join(regions, ", "));
  if (!attributes.empty()) text_ += fmt::format(" {{{}}}", attributes);
  const std::string result = types_of(types, std::identity());
  text_ += fmt::format(" : ({}) -> {}{}\n", types_of(operands, std::mem_fn(&HloValue::type)),
                       types.size() == 1 ? result : "(" + result + ")", location_);
  return results;
}

std::string HloWriter::region(const std::vector<HloType>& arguments, const Body& body) {
  std::string outer = std::move(text_);
  text_.clear();
  ++depth_;
  Values inner;
  std::string list;
  for (const HloType& type : arguments) {
    inner.push_back({fmt::format("%{}", next_++), type});
    list += fmt::format("{}{}: {}", list.empty() ? "" : ", ", inner.back().name, type.text());
  }
  const Values results = body(inner);
  text_ += fmt::format("{}\"stablehlo.return\"({}) : ({}) -> ()\n", indent(), names_of(results),
                       types_of(results, std::mem_fn(&HloValue::type)));
  --depth_;
  const std::string block = list.empty() ? "" : fmt::format("{}^bb0({}):\n", indent(), list);
  std::string text = fmt::format("{{\n{}{}{}}}", block, text_, indent());
  text_ = std::move(outer);
  return text;
}

std::string HloWriter::combiner(std::string_view kind, std::string_view element) {
  return region({{element, {}}, {element, {}}}, [&](const Values& scalars) {
    return Values{binary(kind, {scalars[0], scalars[1]})};
  });
}

HloValue HloWriter::compare(std::string_view direction, const Pair& x) {
  // The type can be left out, but then old versions of XLA compare constants as unsigned.
  const char first = x.a.type.element[0];
  const bool is_signed = first == 'i' && x.a.type.element != "i1";
  const std::string_view type = x.a.type.is_floating() ? "FLOAT"
                                : is_signed            ? "SIGNED"
                                                       : "UNSIGNED";
  return op("compare", {x.a, x.b}, x.a.type.with("i1"),
            fmt::format("compare_type = #stablehlo<comparison_type {}>, comparison_direction = "
                        "#stablehlo<comparison_direction {}>",
                        type, direction));
}

HloValue HloWriter::splat(const HloType& type, double value) {
  if (type.num_elements() == 0) return broadcast(splat(type.with(HloDims()), value), type);
  return op("constant", {}, type,
            fmt::format("value = dense<{}> : {}", number_text(type.element, value), type.text()));
}

HloValue HloWriter::constant(const HloType& type, std::span<const std::byte> row_major) {
  if (type.num_elements() == 0) return splat(type, 0);
  // Plug-ins disagree on the layout of i1 in hexadecimal text, so preds are written as ui8.
  const HloType stored = type.element == "i1" ? type.with("ui8") : type;
  const HloValue value =
      op("constant", {}, stored,
         fmt::format("value = dense<\"{}\"> : {}", hex(row_major), stored.text()));
  return convert(value, type.element);
}

HloValue HloWriter::integers(std::span<const std::int64_t> numbers) {
  const auto is_wide = [](std::int64_t number) {
    return number > std::numeric_limits<std::int32_t>::max();
  };
  const HloType type{std::ranges::any_of(numbers, is_wide) ? "i64" : "i32",
                     {static_cast<std::int64_t>(numbers.size())}};
  return op("constant", {}, type,
            fmt::format("value = dense<[{}]> : {}", fmt::join(numbers, ", "), type.text()));
}

HloValue HloWriter::iota(const HloType& type, int dim) {
  return op("iota", {}, type, fmt::format("iota_dimension = {} : i64", dim));
}

HloValue HloWriter::convert(const HloValue& x, std::string_view element) {
  return x.type.element == element ? x : op("convert", {x}, x.type.with(element));
}

HloValue HloWriter::reshape(const HloValue& x, HloDims dims) {
  if (x.type.dims == dims) return x;
  return op("reshape", {x}, x.type.with(std::move(dims)));
}

HloValue HloWriter::transpose(const HloValue& x, std::span<const std::int64_t> permutation) {
  if (std::ranges::is_sorted(permutation)) return x;
  HloDims dims;
  for (const std::int64_t dim : permutation) {
    dims.push_back(x.type.dims[static_cast<std::size_t>(dim)]);
  }
  return op("transpose", {x}, x.type.with(dims), "permutation = " + hlo_array(permutation));
}

HloValue HloWriter::broadcast(const HloValue& x, const HloType& type,
                              std::span<const std::int64_t> dims) {
  return op("broadcast_in_dim", {x}, type, "broadcast_dimensions = " + hlo_array(dims));
}

HloValue HloWriter::pad(const HloValue& x, const HloValue& padding, const HloDims& low,
                        const HloDims& high, const HloDims& interior) {
  const auto is_zero = [](std::int64_t count) { return count == 0; };
  if (std::ranges::all_of(low, is_zero) && std::ranges::all_of(high, is_zero) &&
      std::ranges::all_of(interior, is_zero)) {
    return x;
  }
  HloDims dims;
  for (std::size_t i = 0; i < low.size(); ++i) {
    const std::int64_t gaps = std::max<std::int64_t>(x.type.dims[i] - 1, 0) * interior[i];
    dims.push_back(x.type.dims[i] + low[i] + high[i] + gaps);
  }
  return op("pad", {x, padding}, x.type.with(dims),
            fmt::format("edge_padding_low = {}, edge_padding_high = {}, interior_padding = {}",
                        hlo_array(low), hlo_array(high), hlo_array(interior)));
}

HloValue HloWriter::slice(const HloValue& x, const HloDims& start, const HloDims& limit,
                          const HloDims& stride) {
  HloDims dims;
  for (std::size_t i = 0; i < start.size(); ++i) {
    dims.push_back((limit[i] - start[i] + stride[i] - 1) / stride[i]);
  }
  return op("slice", {x}, x.type.with(dims),
            fmt::format("start_indices = {}, limit_indices = {}, strides = {}", hlo_array(start),
                        hlo_array(limit), hlo_array(stride)));
}

HloValue HloWriter::reduce(std::string_view kind, const HloValue& x, double neutral,
                           std::span<const std::int64_t> dims) {
  HloDims kept;
  for (int dim = 0; dim < x.type.rank(); ++dim) {
    if (std::ranges::find(dims, dim) == dims.end()) {
      kept.push_back(x.type.dims[static_cast<std::size_t>(dim)]);
    }
  }
  const HloValue start = splat(x.type.with(HloDims()), neutral);
  return op("reduce", {x, start}, x.type.with(kept), "dimensions = " + hlo_array(dims),
            {combiner(kind, x.type.element)});
}

}  // namespace weft
