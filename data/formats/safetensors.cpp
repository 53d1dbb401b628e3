#include "data/formats/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "data/formats/in_quotes.hpp"
#include "data/formats/strict_json.hpp"

namespace weft {
namespace {

constexpr std::string_view kWhat = "safetensors header";
constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::uint64_t kDataBytesMax = std::uint64_t{1} << 62;

struct FileDType {
  std::string_view name;
  std::uint64_t element_bytes;
  std::optional<DType> dtype;
};
constexpr std::array<FileDType, 15> kFileDTypes{{{"BOOL", 1, DType::pred},
                                                 {"U8", 1, DType::u8},
                                                 {"I8", 1, DType::i8},
                                                 {"F8_E5M2", 1, {}},
                                                 {"F8_E4M3", 1, {}},
                                                 {"I16", 2, {}},
                                                 {"U16", 2, {}},
                                                 {"F16", 2, DType::f16},
                                                 {"BF16", 2, DType::bf16},
                                                 {"I32", 4, DType::i32},
                                                 {"U32", 4, DType::u32},
                                                 {"F32", 4, DType::f32},
                                                 {"F64", 8, DType::f64},
                                                 {"I64", 8, DType::i64},
                                                 {"U64", 8, {}}}};

/// Returns the dtype that has this name in files, or null if there is no such dtype.
const FileDType* find_dtype(std::string_view name) {
  const auto* found = std::ranges::find(kFileDTypes, name, &FileDType::name);
  return found == kFileDTypes.end() ? nullptr : found;
}

std::string_view name_of(DType dtype) {
  return std::ranges::find(kFileDTypes, std::optional(dtype), &FileDType::dtype)->name;
}

/// Returns a tensor's size in bytes, or nothing if the size doesn't fit in 64 bits.
std::optional<std::uint64_t> bytes_of(std::span<const std::int64_t> sizes,
                                      std::uint64_t element_bytes) {
  if (std::ranges::find(sizes, 0) != sizes.end()) return 0;
  for (const std::int64_t size : sizes) {
    const auto factor = static_cast<std::uint64_t>(size);
    if (__builtin_mul_overflow(element_bytes, factor, &element_bytes)) return std::nullopt;
  }
  return element_bytes;
}

class HeaderReader final : public StrictJson {
 public:
  HeaderReader(std::uint64_t data_begin, std::uint64_t file_bytes)
      : StrictJson(kWhat), data_bytes_(file_bytes - data_begin) {
    header.data_begin = data_begin;
  }

  bool start_object(std::size_t) override {
    if (inside_ == Inside::nothing) {
      inside_ = Inside::header;
    } else if (inside_ == Inside::header) {
      inside_ = name_ == kMetadataKey ? Inside::metadata : Inside::tensor;
      seen_ = {};
    } else {
      refuse("an object");
    }
    return true;
  }
  bool end_object() override {
    if (inside_ == Inside::tensor) finish_tensor();
    inside_ = inside_ == Inside::header ? Inside::nothing : Inside::header;
    return true;
  }
  bool key(std::string& key) override {
    if (inside_ == Inside::header) {
      if (!names_.insert(key).second) refuse_second("the header", key);
      if (key.empty()) fail(Errc::corrupt, "{}: a tensor's name is empty; give it one", kWhat);
      name_ = std::move(key);
    } else if (inside_ == Inside::metadata) {
      if (header.metadata.contains(key)) refuse_second(kMetadataKey, key);
      key_ = std::move(key);
    } else {
      const auto* found = std::ranges::find(kFields, key);
      if (found == kFields.end()) {
        fail(Errc::corrupt, "{}: has the field {}; a tensor has only {}", tensor(), in_quotes(key),
             fmt::join(kFields, ", "));
      }
      field_ = static_cast<std::size_t>(found - kFields.begin());
      if (std::exchange(seen_[field_], true)) {
        refuse_second(fmt::format("tensor {}", in_quotes(name_)), key);
      }
    }
    return true;
  }
  bool string(std::string& value) override {
    if (inside_ == Inside::metadata) {
      header.metadata.emplace(std::move(key_), std::move(value));
      return true;
    }
    if (inside_ != Inside::tensor || field_ != kDTypeField) refuse(in_quotes(value));
    if (value.empty()) refuse("an empty text");
    dtype_ = std::move(value);
    return true;
  }
  bool start_array(std::size_t) override {
    if (inside_ != Inside::tensor || field_ == kDTypeField) refuse("an array");
    inside_ = field_ == kShapeField ? Inside::shape : Inside::offsets;
    if (inside_ == Inside::shape) sizes_.clear();
    if (inside_ == Inside::offsets) offset_count_ = 0;
    return true;
  }
  bool number_unsigned(std::uint64_t value) override {
    if (inside_ == Inside::shape) {
      if (sizes_.size() == kSafetensorsDimsMax) {
        fail(Errc::corrupt, "{}: its shape has more than {} dims; reshape it", tensor(),
             kSafetensorsDimsMax);
      }
      if (value > kDimMax) refuse(fmt::format("{}", value));
      sizes_.push_back(static_cast<std::int64_t>(value));
    } else if (inside_ == Inside::offsets && offset_count_ < offsets_.size()) {
      offsets_[offset_count_++] = value;
    } else {
      refuse(fmt::format("{}", value));
    }
    return true;
  }
  bool end_array() override {
    if (inside_ == Inside::offsets && offset_count_ != offsets_.size()) refuse("its end");
    inside_ = Inside::tensor;
    return true;
  }

  SafetensorsHeader header;

 private:
  /// The object or array that contains the next value.
  enum class Inside { nothing, header, tensor, shape, offsets, metadata };
  static constexpr std::size_t kDTypeField = 0;
  static constexpr std::size_t kShapeField = 1;
  static constexpr std::array<std::string_view, 3> kFields{"dtype", "shape", "data_offsets"};
  static constexpr std::uint64_t kDimMax = std::numeric_limits<std::int64_t>::max();

  std::string tensor() const { return fmt::format("{}: tensor {}", kWhat, in_quotes(name_)); }

  std::string place() const override {
    switch (inside_) {
      case Inside::nothing: return "the whole";
      case Inside::header: return in_quotes(name_);
      case Inside::metadata: return fmt::format("{}, key {}", kMetadataKey, in_quotes(key_));
      case Inside::tensor:
      case Inside::shape:
      case Inside::offsets: break;
    }
    return fmt::format("tensor {}, field {}", in_quotes(name_), kFields[field_]);
  }
  std::string_view expected() const override {
    switch (inside_) {
      case Inside::nothing:
      case Inside::header: return "an object";
      case Inside::metadata: return "a string";
      case Inside::tensor:
      case Inside::shape:
      case Inside::offsets: break;
    }
    if (field_ == kDTypeField) return "a string";
    return field_ == kShapeField ? "an array of sizes, integers from 0 to 2^53"
                                 : "an array of two integers from 0, begin and end";
  }

  void finish_tensor() {
    const std::string what = tensor();
    for (std::size_t i = 0; i < kFields.size(); ++i) {
      if (!seen_[i]) fail(Errc::corrupt, "{}: has no field {}", what, kFields[i]);
    }
    const auto [begin, end] = offsets_;
    if (begin > end || end > data_bytes_) {
      fail(Errc::corrupt,
           "{}: data_offsets [{}, {}) aren't within the {} bytes of data; was the file cut off?",
           what, begin, end, data_bytes_);
    }
    const FileDType* known = find_dtype(dtype_);
    const auto bytes = bytes_of(sizes_, known != nullptr ? known->element_bytes : 1);
    // For an unknown dtype the size can't be checked, because an element may have fewer bits than a
    // byte.
    if (known != nullptr && end - begin != bytes) {
      fail(Errc::corrupt, "{}: data_offsets [{}, {}) have {} bytes; {} of shape [{}] has {}", what,
           begin, end, end - begin, known->name, fmt::join(sizes_, ","),
           bytes ? fmt::format("{}", *bytes) : "more than 2^64");
    }
    header.tensors.push_back({.name = name_,
                              .dtype = dtype_,
                              .sizes = sizes_,
                              .begin = header.data_begin + begin,
                              .end = header.data_begin + end});
  }

  std::uint64_t data_bytes_;
  Inside inside_ = Inside::nothing;
  std::set<std::string> names_;  // not a hash set, because a file could cause collisions
  std::string name_;             ///< name of the tensor
  std::string key_;              ///< key of the metadata
  std::size_t field_ = 0;
  std::array<bool, kFields.size()> seen_{};
  std::string dtype_;
  std::vector<std::int64_t> sizes_;
  std::array<std::uint64_t, 2> offsets_{};
  std::size_t offset_count_ = 0;
};

/// Throws corrupt unless the tensors, in order of `begin`, cover the data without gap or overlap.
void check_cover(const SafetensorsHeader& header, std::uint64_t file_bytes) {
  std::uint64_t covered = header.data_begin;
  std::string_view before;
  for (const SafetensorsEntry& entry : header.tensors) {
    if (entry.begin < covered) {
      fail(
          Errc::corrupt,
          "{}: tensor {} begins at byte {} of the file, where tensor {} ends at {}; write the file "
          "again without overlaps",
          kWhat, in_quotes(entry.name), entry.begin, in_quotes(before), covered);
    }
    if (entry.begin > covered) {
      fail(Errc::corrupt,
           "{}: bytes [{}, {}) of the file, before tensor {}, belong to no tensor; write the file "
           "again without gaps",
           kWhat, covered, entry.begin, in_quotes(entry.name));
    }
    covered = entry.end;
    before = entry.name;
  }
  if (covered != file_bytes) {
    fail(Errc::corrupt,
         "{}: bytes [{}, {}) at the end of the file belong to no tensor; was something appended?",
         kWhat, covered, file_bytes);
  }
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// Returns the text as a JSON string.
std::string json_string(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    fail(Errc::invalid_argument, "{}: {} isn't UTF-8; names and metadata must be UTF-8", kWhat,
         in_quotes(text));
  }
}

void check_names(const std::vector<NamedType>& tensors) {
  std::unordered_set<std::string_view> names;
  for (const NamedType& tensor : tensors) {
    if (tensor.name.empty() || tensor.name == kMetadataKey) {
      fail(Errc::invalid_argument, "{}: no tensor can have the name {}; rename it", kWhat,
           in_quotes(tensor.name));
    }
    if (!names.insert(tensor.name).second) {
      fail(Errc::invalid_argument, "{}: two tensors have the name {}; rename one of them", kWhat,
           in_quotes(tensor.name));
    }
  }
}

std::string metadata_text(const std::map<std::string, std::string>& metadata) {
  std::string text = fmt::format("\"{}\":{{", kMetadataKey);
  for (const auto& [key, value] : metadata) {
    if (text.back() != '{') text += ',';
    text += fmt::format("{}:{}", json_string(key), json_string(value));
  }
  return text + '}';
}

}  // namespace

std::optional<DType> dtype_of(std::string_view safetensors_dtype) {
  const FileDType* found = find_dtype(safetensors_dtype);
  return found == nullptr ? std::nullopt : found->dtype;
}

std::uint64_t safetensors_header_bytes(std::span<const std::byte> first8,
                                       std::uint64_t file_bytes) {
  std::uint64_t json_bytes = 0;
  if (first8.size() < sizeof json_bytes || file_bytes < sizeof json_bytes) {
    fail(Errc::corrupt, "{}: the file has {} bytes, fewer than the 8 bytes of the header's length",
         kWhat, std::min<std::uint64_t>(first8.size(), file_bytes));
  }
  std::memcpy(&json_bytes, first8.data(), sizeof json_bytes);
  if (json_bytes > kSafetensorsJsonBytesMax) {
    fail(Errc::corrupt,
         "{}: has a length of {} bytes; at most {} are possible; is it a safetensors file?", kWhat,
         json_bytes, kSafetensorsJsonBytesMax);
  }
  if (json_bytes > file_bytes - sizeof json_bytes) {
    fail(Errc::corrupt, "{}: has a length of {} bytes in a file of {}; was the file cut off?",
         kWhat, json_bytes, file_bytes);
  }
  return sizeof json_bytes + json_bytes;
}

SafetensorsHeader read_safetensors_header(std::span<const std::byte> header,
                                          std::uint64_t file_bytes) {
  const std::uint64_t header_bytes = safetensors_header_bytes(header, file_bytes);
  if (header.size() != header_bytes) {
    fail(Errc::invalid_argument, "{}: {} bytes were given to read; the header has {}", kWhat,
         header.size(), header_bytes);
  }
  const auto json = header.subspan(sizeof(std::uint64_t));
  if (json.empty() || json.front() != std::byte{'{'}) {
    fail(Errc::corrupt, "{}: doesn't begin with '{{'; is it a safetensors file?", kWhat);
  }
  HeaderReader reader(header_bytes, file_bytes);
  reader.read(json);
  std::ranges::sort(reader.header.tensors, {}, [](const SafetensorsEntry& entry) {
    return std::tie(entry.begin, entry.end, entry.name);
  });
  check_cover(reader.header, file_bytes);
  return std::move(reader.header);
}

SafetensorsLayout write_safetensors_header(const std::vector<NamedType>& tensors,
                                           const std::map<std::string, std::string>& metadata) {
  check_names(tensors);
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) {
    return std::pair(-byte_size(tensors[i].type.dtype), std::string_view(tensors[i].name));
  });

  SafetensorsLayout layout{.begins = std::vector<std::uint64_t>(tensors.size())};
  std::string json = "{";
  if (!metadata.empty()) json += metadata_text(metadata);
  std::uint64_t data_bytes = 0;
  for (const std::size_t i : order) {
    const auto& [name, type] = tensors[i];
    const auto bytes = static_cast<std::uint64_t>(type.bytes());
    if (bytes > kDataBytesMax - data_bytes) {
      fail(Errc::invalid_argument, "{}: the tensors up to {} have more than 2^62 bytes", kWhat,
           in_quotes(name));
    }
    layout.begins[i] = data_bytes;
    data_bytes += bytes;
    if (json.size() > 1) json += ',';
    json +=
        fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", json_string(name),
                    name_of(type.dtype), fmt::join(type.shape.begin(), type.shape.end(), ","),
                    layout.begins[i], data_bytes);
  }
  json += '}';

  std::uint64_t json_bytes = json.size();
  const std::uint64_t data_begin = (sizeof json_bytes + json_bytes + kSafetensorsAlignment - 1) /
                                   kSafetensorsAlignment * kSafetensorsAlignment;
  json_bytes = data_begin - sizeof json_bytes;
  if (json_bytes > kSafetensorsJsonBytesMax) {
    fail(Errc::invalid_argument,
         "{}: {} tensors and the metadata need {} bytes; at most {} are possible; write more files",
         kWhat, tensors.size(), json_bytes, kSafetensorsJsonBytesMax);
  }
  json.resize(json_bytes, ' ');
  layout.header.resize(data_begin);
  std::memcpy(layout.header.data(), &json_bytes, sizeof json_bytes);
  std::ranges::copy(as_bytes(json), layout.header.begin() + sizeof json_bytes);
  for (std::uint64_t& begin : layout.begins) begin += data_begin;
  layout.file_bytes = data_begin + data_bytes;
  return layout;
}

}  // namespace weft
