#include "data/formats/npy.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "data/formats/in_quotes.hpp"

namespace weft {
namespace {

constexpr std::string_view kWhat = "npy header";
constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionOffset = 6;
constexpr std::size_t kLengthOffset = 8;
constexpr std::size_t kHeaderAlignment = 64;

struct ElementType {
  std::string_view code;  ///< kind and size of an element
  std::optional<DType> dtype;

  std::int64_t bytes() const { return code[1] - '0'; }
};
constexpr std::array<ElementType, 12> kElementTypes{{{"b1", DType::pred},
                                                     {"i1", DType::i8},
                                                     {"u1", DType::u8},
                                                     {"i2", {}},
                                                     {"u2", {}},
                                                     {"f2", DType::f16},
                                                     {"i4", DType::i32},
                                                     {"u4", DType::u32},
                                                     {"f4", DType::f32},
                                                     {"i8", DType::i64},
                                                     {"u8", {}},
                                                     {"f8", DType::f64}}};

/// Returns a list of the known types, "b1, i1, ...", for error messages.
std::string type_codes() {
  std::string codes;
  for (const ElementType& known : kElementTypes) {
    if (!codes.empty()) codes += ", ";
    codes += known.code;
  }
  return codes;
}

std::uint8_t byte_at(std::span<const std::byte> bytes, std::size_t i) {
  return std::to_integer<std::uint8_t>(bytes[i]);
}

/// Returns the value of little-endian bytes.
std::uint64_t read_number(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8U | byte_at(bytes, i);
  return value;
}

/// Reads the parts of a Python literal in order. Spaces may separate them.
class LiteralReader {
 public:
  /// `offset` is the position of the text in the file. Error messages give positions in the file.
  LiteralReader(std::string_view text, std::size_t offset) : text_(text), offset_(offset) {}

  /// Returns the next character that isn't a space, or 0 at the end.
  char peek() {
    at_ = std::min(text_.find_first_not_of(" \t\n\r\f", at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool at_end() { return peek() == '\0' && at_ == text_.size(); }
  /// Moves past the character if it comes next, and returns whether it does.
  bool take(char character) {
    if (at_end() || peek() != character) return false;
    ++at_;
    return true;
  }
  void expect(char character, std::string_view expected) {
    if (!take(character)) refuse(expected);
  }
  /// Reads a string of one line, without escapes.
  std::string_view string(std::string_view expected) {
    const char quote = peek();
    if (quote != '\'' && quote != '"') refuse(expected);
    const std::size_t end = text_.find_first_of(std::string{quote, '\\', '\n'}, at_ + 1);
    if (end == std::string_view::npos || text_[end] != quote) refuse(expected);
    const std::string_view content = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return content;
  }
  bool boolean(std::string_view expected) {
    peek();
    const std::string_view word = text_.substr(at_, text_.find_first_of(", \t\n\r\f}", at_) - at_);
    if (word != "True" && word != "False") refuse(expected);
    at_ += word.size();
    return word == "True";
  }
  std::int64_t number(std::string_view expected) {
    peek();
    const char* const begin = text_.data() + at_;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) refuse(expected);
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }
  [[noreturn]] void refuse(std::string_view expected) {
    constexpr std::size_t kShownBytes = 24;
    const bool end = at_end();
    fail(Errc::corrupt, "{}: at byte {}: found {}; expected {}", kWhat, offset_ + at_,
         end ? "its end" : in_quotes(text_.substr(at_, kShownBytes)), expected);
  }

 private:
  std::string_view text_;
  std::size_t offset_;
  std::size_t at_ = 0;
};

Shape read_shape(LiteralReader& reader) {
  constexpr std::string_view kExpected = "a tuple of integers: (), (2,) or (2, 3)";
  std::array<std::int64_t, kDimCountMax> dims{};
  std::size_t count = 0;
  reader.expect('(', kExpected);
  while (!reader.take(')')) {
    if (count == dims.size()) {
      fail(Errc::corrupt, "{}: shape has more than {} dims; reshape the array", kWhat, count);
    }
    dims[count++] = reader.number(kExpected);
    if (reader.take(',')) continue;
    if (count == 1) reader.refuse("',': (2) isn't a tuple, but (2,) is");
    reader.expect(')', kExpected);
    break;
  }
  try {
    return Shape(std::span(dims).first(count));
  } catch (const Error& error) {
    fail(Errc::corrupt, "{}: {}", kWhat, error.what());
  }
}

/// Reads `descr` and sets the fields that depend on it.
void read_descr(LiteralReader& reader, NpyHeader& header) {
  if (reader.peek() == '[' || reader.peek() == '(' || reader.peek() == '{') {
    fail(Errc::corrupt,
         "{}: descr is of a structured type, which weft doesn't read; save each field as an array",
         kWhat);
  }
  header.descr = reader.string("descr, a string like '<f4'");
  const std::string_view descr = header.descr;
  if (descr == "|O" || descr == "O") {
    fail(Errc::corrupt,
         "{}: descr {} is of Python objects, which weft doesn't read; save an array of numbers",
         kWhat, in_quotes(descr));
  }
  const auto* found = descr.size() == 3
                          ? std::ranges::find(kElementTypes, descr.substr(1), &ElementType::code)
                          : kElementTypes.end();
  const std::string_view orders =
      found != kElementTypes.end() && found->bytes() == 1 ? "|<>" : "<>";
  if (found == kElementTypes.end() || orders.find(descr[0]) == std::string_view::npos) {
    fail(Errc::corrupt,
         "{}: descr {}; expected '<', '>' or, of one byte, '|', then one of {}; convert the array, "
         "for example by astype('<f4')",
         kWhat, in_quotes(descr), type_codes());
  }
  header.dtype = found->dtype;
  header.element_bytes = found->bytes();
  header.big_endian = descr[0] == '>' && header.element_bytes > 1;
}

NpyHeader read_dict(LiteralReader reader) {
  constexpr std::array<std::string_view, 3> kKeys{"descr", "fortran_order", "shape"};
  NpyHeader header;
  std::array<bool, kKeys.size()> seen{};
  reader.expect('{', "'{'");
  while (!reader.take('}')) {
    const std::string_view key = reader.string("a key or '}'");
    const auto* found = std::ranges::find(kKeys, key);
    if (found == kKeys.end()) {
      fail(Errc::corrupt, "{}: has the key {}; expected only {}", kWhat, in_quotes(key),
           fmt::join(kKeys, ", "));
    }
    const auto index = static_cast<std::size_t>(found - kKeys.begin());
    if (seen[index]) fail(Errc::corrupt, "{}: has the key {} twice", kWhat, key);
    seen[index] = true;
    reader.expect(':', "':'");
    switch (index) {
      case 0: read_descr(reader, header); break;
      case 1: header.fortran_order = reader.boolean("fortran_order, True or False"); break;
      default: header.shape = read_shape(reader);
    }
    if (reader.take(',')) continue;
    reader.expect('}', "',' or '}'");
    break;
  }
  if (!reader.at_end()) reader.refuse("nothing but spaces after '}'");
  for (std::size_t i = 0; i < kKeys.size(); ++i) {
    if (!seen[i]) fail(Errc::corrupt, "{}: has no key {}", kWhat, kKeys[i]);
  }
  return header;
}

/// Returns the size in bytes of the number n, which is the header's length.
std::size_t length_bytes(std::span<const std::byte> bytes) {
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!start.starts_with(kMagic)) {
    fail(Errc::corrupt, "{}: begins with {}, not with {}; is it an npy file?", kWhat,
         in_quotes(start.substr(0, kMagic.size())), in_quotes(kMagic));
  }
  if (start.size() < kLengthOffset) {
    fail(Errc::corrupt, "{}: ends after {} bytes, before its length; was the file cut off?", kWhat,
         start.size());
  }
  const int major = byte_at(bytes, kVersionOffset);
  const int minor = byte_at(bytes, kVersionOffset + 1);
  if (major < 1 || major > 3 || minor != 0) {
    fail(Errc::version, "{}: version {}.{}; expected 1.0, 2.0 or 3.0", kWhat, major, minor);
  }
  return major == 1 ? sizeof(std::uint16_t) : sizeof(std::uint32_t);
}

template <std::size_t kBytes>
void reorder(const NpyHeader& header, std::span<const std::byte> data, std::byte* out) {
  const Shape& shape = header.shape;
  std::array<std::size_t, kDimCountMax> strides{};  // strides in the data, in bytes
  std::size_t stride = kBytes;
  for (int i = 0; i < shape.size(); ++i) {
    const int dim = header.fortran_order ? i : shape.size() - 1 - i;
    strides[static_cast<std::size_t>(dim)] = stride;
    stride *= static_cast<std::size_t>(shape[dim]);
  }
  std::array<std::int64_t, kDimCountMax> index{};
  const std::byte* from = data.data();
  for (std::size_t done = 0; done < data.size(); done += kBytes) {
    std::array<std::byte, kBytes> element;
    std::memcpy(element.data(), from, kBytes);
    if (header.big_endian) std::ranges::reverse(element);
    std::memcpy(out + done, element.data(), kBytes);
    for (int dim = shape.size() - 1; dim >= 0; --dim) {
      const auto d = static_cast<std::size_t>(dim);
      if (++index[d] < shape[dim]) {
        from += strides[d];
        break;
      }
      from -= static_cast<std::size_t>(shape[dim] - 1) * strides[d];
      index[d] = 0;
    }
  }
}

}  // namespace

NpyHeader read_npy_header(std::span<const std::byte> bytes, std::uint64_t file_bytes) {
  const std::size_t data_offset = kLengthOffset + length_bytes(bytes);
  if (bytes.size() < data_offset) {
    fail(Errc::corrupt, "{}: ends after {} bytes, within its length; was the file cut off?", kWhat,
         bytes.size());
  }
  const auto length = bytes.first(data_offset).subspan(kLengthOffset);
  const std::uint64_t data_begin = data_offset + read_number(length);
  if (data_begin > kNpyHeaderBytesMax) {
    fail(Errc::corrupt, "{}: has {} bytes; at most {} are possible", kWhat, data_begin,
         kNpyHeaderBytesMax);
  }
  if (data_begin > file_bytes) {
    fail(Errc::corrupt, "{}: has {} bytes in a file of {}; was the file cut off?", kWhat,
         data_begin, file_bytes);
  }
  if (data_begin > bytes.size()) {
    fail(Errc::invalid_argument, "{}: {} bytes were given to read; the header has {}", kWhat,
         bytes.size(), data_begin);
  }
  const auto text = bytes.first(data_begin).subspan(data_offset);
  NpyHeader header = read_dict(
      LiteralReader({reinterpret_cast<const char*>(text.data()), text.size()}, data_offset));
  header.data_begin = data_begin;
  // The product can't overflow, because a Shape has at most 2^53 elements of at most 8 bytes.
  const auto data_bytes =
      static_cast<std::uint64_t>(header.shape.num_elements() * header.element_bytes);
  if (file_bytes - data_begin != data_bytes) {
    fail(Errc::corrupt, "{}: has {} bytes of data; {} of shape ({}) needs {}; was the file {}?",
         kWhat, file_bytes - data_begin, in_quotes(header.descr),
         fmt::join(header.shape.begin(), header.shape.end(), ", "), data_bytes,
         file_bytes - data_begin < data_bytes ? "cut off" : "appended to");
  }
  return header;
}

std::vector<std::byte> write_npy_header(const TensorType& type) {
  const auto* found =
      std::ranges::find(kElementTypes, std::optional(type.dtype), &ElementType::dtype);
  if (found == kElementTypes.end()) {
    fail(Errc::invalid_argument, "{}: npy has no {}; convert the tensor to f32", kWhat,
         to_string(type.dtype));
  }
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                 found->bytes() == 1 ? '|' : '<', found->code,
                                 fmt::join(type.shape.begin(), type.shape.end(), ", "),
                                 type.shape.size() == 1 ? "," : "");
  constexpr std::size_t kDataOffset = kLengthOffset + sizeof(std::uint16_t);
  const std::size_t data_begin =
      (kDataOffset + text.size() + 1 + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment;
  text.resize(data_begin - kDataOffset - 1, ' ');
  text += '\n';
  std::string header(kMagic);
  header +=
      {'\x01', '\0', static_cast<char>(text.size() & 0xffU), static_cast<char>(text.size() >> 8U)};
  header += text;
  const auto bytes = std::as_bytes(std::span(header));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> to_row_major(const NpyHeader& header, std::span<const std::byte> data) {
  const std::int64_t element_bytes = header.element_bytes;
  const auto bytes = static_cast<std::uint64_t>(header.shape.num_elements() * element_bytes);
  if (data.size() != bytes) {
    fail(Errc::invalid_argument, "npy: {} bytes of data are given, but the header says {}",
         data.size(), bytes);
  }
  if (!header.fortran_order && !header.big_endian) return {data.begin(), data.end()};
  std::vector<std::byte> out(data.size());
  switch (element_bytes) {
    case 1: reorder<1>(header, data, out.data()); break;
    case 2: reorder<2>(header, data, out.data()); break;
    case 4: reorder<4>(header, data, out.data()); break;
    case 8: reorder<8>(header, data, out.data()); break;
    default:
      fail(Errc::invalid_argument, "npy: elements of {} bytes; expected 1, 2, 4 or 8",
           element_bytes);
  }
  return out;
}

}  // namespace weft
