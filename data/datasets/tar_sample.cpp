#include "data/datasets/tar_sample.hpp"

#include <algorithm>
#include <utility>

#include <weft/tensor/error.hpp>

#include "data/datasets/elements.hpp"
#include "data/datasets/number_text.hpp"
#include "data/formats/in_quotes.hpp"
#include "data/formats/npy.hpp"
#include "data/items/fields.hpp"

namespace weft {
namespace {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

Field field_of(const TarNumber& number) { return {number.name, {number.dtype, {}}}; }
Field field_of(const TarArray& array) {
  const DType dtype = array.field.dtype.value_or(DType::f32);
  check_scale(dtype, array.field.scale, array.field.offset);
  return {array.field.name, {dtype, array.shape}};
}

Field field_of(const TarBytes& bytes) {
  if (bytes.length < 1) {
    fail(Errc::invalid_argument, "field '{}': length = {}: expected 1 or more", bytes.name,
         bytes.length);
  }
  return {bytes.name, {DType::u8, {bytes.length}}};
}
Field field_of(const TarDecoder& decoder) {
  if (!decoder.decode) {
    fail(Errc::invalid_argument, "field '{}': there is no function to decode it",
         decoder.field.name);
  }
  return decoder.field;
}

void decode_number(const TarNumber& number, std::span<const std::byte> file,
                   std::span<std::byte> out) {
  std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  if (store_number({.dtype = number.dtype}, text, out.data())) return;
  fail(Errc::corrupt, "is {}: expected a number of dtype {}", in_quotes(text),
       to_string(number.dtype));
}

void decode_array(const TarArray& array, std::span<const std::byte> file,
                  std::span<std::byte> out) {
  const NpyHeader header = read_npy_header(file, file.size());
  if (header.shape != array.shape) {
    fail(Errc::corrupt, "has shape ({}): expected ({})", header.shape.to_string(),
         array.shape.to_string());
  }
  FileField field = array.field;
  field.dtype = field.dtype.value_or(DType::f32);
  ForeignElement element = element_of(header);
  const auto data = file.subspan(header.data_begin);
  if (!header.fortran_order) return cast_elements(make_cast(element, field), data, out);
  element.big_endian = false;
  cast_elements(make_cast(element, field), to_row_major(header, data), out);
}

void copy_bytes(std::span<const std::byte> file, std::span<std::byte> out) {
  if (file.size() > out.size()) {
    fail(Errc::corrupt, "has {} bytes, but length is {}; raise length", file.size(), out.size());
  }
  std::fill(std::ranges::copy(file, out.begin()).out, out.end(), std::byte{0});
}

}  // namespace

std::vector<std::string> split_extensions(const std::string& extensions) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= extensions.size();) {
    const std::size_t end = std::min(extensions.find(';', begin), extensions.size());
    const std::string& word = words.emplace_back(extensions.substr(begin, end - begin));
    const bool is_odd = std::ranges::any_of(
        word, [](char letter) { return letter == '/' || (letter >= 'A' && letter <= 'Z'); });
    if (word.empty() || word[0] == '.' || is_odd) {
      fail(Errc::invalid_argument,
           "extension = '{}': expected the part of a file name after its first dot, in lower case, "
           "such as jpg or jpg;png",
           extensions);
    }
    begin = end + 1;
  }
  return words;
}

void decode_file(const FileDecoder& decode, const Field& field, std::span<const std::byte> file,
                 ItemRandom& random, std::span<std::byte> out) {
  const std::vector<Field> fields{field};
  decode(file, ItemWriter(fields, {&out, 1}), random);
}

std::optional<SampleName> sample_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = path.find('.', base);
  if (dot == std::string_view::npos || dot == base || dot + 1 == path.size()) return {};
  SampleName name{path.substr(0, dot), std::string(path.substr(dot + 1))};
  for (char& letter : name.extension) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return name;
}

TarSample::TarSample(std::string_view dataset, std::vector<TarField> fields)
    : tar_fields_(std::move(fields)) {
  try {
    for (const TarField& field : tar_fields_) {
      fields_.push_back(
          std::visit(Overloaded{
                         [](const TarImage& image) { return weft::field_of(image.image); },
                         [](const auto& other) { return field_of(other); },
                     },
                     field));
      extensions_.push_back(split_extensions(extension(fields_.size() - 1)));
      for (const std::string& word : extensions_.back()) {
        const std::size_t first = *field_of_extension(word);
        if (first + 1 < fields_.size()) {
          fail(Errc::invalid_argument, "fields '{}' and '{}' both have files of extension {}",
               fields_[first].name, fields_.back().name, word);
        }
      }
    }
  } catch (const Error& error) {
    fail(error.code(), "{}: {}", dataset, error.what());
  }
  check_fields(dataset, fields_);
}

std::optional<std::size_t> TarSample::field_of_extension(std::string_view extension) const {
  for (std::size_t i = 0; i < extensions_.size(); ++i) {
    if (std::ranges::find(extensions_[i], extension) != extensions_[i].end()) return i;
  }
  return {};
}

const std::string& TarSample::extension(std::size_t field) const {
  return std::visit([](const auto& each) -> const std::string& { return each.extension; },
                    tar_fields_[field]);
}

void TarSample::decode(std::size_t field, std::span<const std::byte> file, ItemRandom& random,
                       std::span<std::byte> out) const {
  std::visit(
      Overloaded{
          [&](const TarImage& image) { decode_image(file, image.image, random, out); },
          [&](const TarNumber& number) { decode_number(number, file, out); },
          [&](const TarArray& array) { decode_array(array, file, out); },
          [&](const TarBytes&) { copy_bytes(file, out); },
          [&](const TarDecoder& each) { decode_file(each.decode, each.field, file, random, out); },
      },
      tar_fields_[field]);
}

void refuse_incomplete(std::string_view key, const std::string& extension) {
  fail(Errc::corrupt, "sample {} has no file of extension {}", in_quotes(key), extension);
}

void refuse_twice(std::string_view key, const std::string& extension) {
  fail(Errc::corrupt, "sample {} has two files of extension {}", in_quotes(key), extension);
}

}  // namespace weft
