#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include <weft/data/text_files.hpp>
#include <weft/tensor/error.hpp>

#include "data/datasets/elements.hpp"
#include "data/datasets/json_record.hpp"
#include "data/datasets/text_lines.hpp"
#include "data/datasets/token_fields.hpp"
#include "data/items/fields.hpp"
#include "spmd/program/element.hpp"

namespace weft {
namespace {

using nlohmann::json;

/// Reads a part of a record into one or several fields.
class JsonReader {
 public:
  virtual ~JsonReader() = default;
  const std::vector<Field>& fields() const { return fields_; }
  /// Throws corrupt if the part is missing or its value doesn't fit the fields.
  virtual void read(const json& record, ItemMemory out) const = 0;

 protected:
  void add(Field field) { fields_.push_back(std::move(field)); }

 private:
  std::vector<Field> fields_;
};

[[noreturn]] void refuse_value(const JsonKey& key, const json* value, const std::string& expected) {
  fail(Errc::corrupt, "key '{}': {}; expected {}", key.text(),
       value == nullptr ? "isn't there" : "is " + json_excerpt(*value), expected);
}

template <typename T>
bool store_whole(const json& value, std::byte* out) {
  T element{};
  if (value.is_boolean()) {
    element = static_cast<T>(value.get<bool>());
  } else if (value.is_number_unsigned()) {
    if (!std::in_range<T>(value.get<std::uint64_t>())) return false;
    element = static_cast<T>(value.get<std::uint64_t>());
  } else if (value.is_number_integer()) {
    if (!std::in_range<T>(value.get<std::int64_t>())) return false;
    element = static_cast<T>(value.get<std::int64_t>());
  } else if (value.is_number_float()) {
    // A floating number such as 3.0 is accepted as an integer up to this limit, 2^53, below which
    // integers are exact in a double.
    constexpr double kExactMax = 9007199254740992.0;
    const auto number = value.get<double>();
    if (std::trunc(number) != number || std::abs(number) > kExactMax ||
        !std::in_range<T>(static_cast<std::int64_t>(number))) {
      return false;
    }
    element = static_cast<T>(static_cast<std::int64_t>(number));
  } else {
    return false;
  }
  std::memcpy(out, &element, sizeof element);
  return true;
}

/// Stores the value. Returns false if the value isn't a number of the dtype.
bool store_value(const JsonNumbers& form, const json& value, std::byte* out) {
  switch (form.dtype) {
    case DType::i32: return store_whole<std::int32_t>(value, out);
    case DType::u32: return store_whole<std::uint32_t>(value, out);
    case DType::i64: return store_whole<std::int64_t>(value, out);
    case DType::i8: return store_whole<std::int8_t>(value, out);
    case DType::u8: return store_whole<std::uint8_t>(value, out);
    case DType::pred: return store_whole<std::uint8_t>(value, out) && *out <= std::byte{1};
    default: break;
  }
  if (!value.is_number() && !value.is_boolean()) return false;
  const double number = value.is_boolean() ? (value.get<bool>() ? 1.0 : 0.0) : value.get<double>();
  store_element(form.dtype, number * form.scale + form.offset, out);
  return true;
}

class NumbersReader : public JsonReader {
 public:
  explicit NumbersReader(JsonNumbers form) : form_(std::move(form)), key_(form_.key) {
    check_scale(form_.dtype, form_.scale, form_.offset);
    if (form_.missing && !is_representable(form_.dtype, *form_.missing)) {
      fail(Errc::invalid_argument,
           "key '{}': missing = {}: expected a number that {} can represent", form_.key,
           *form_.missing, to_string(form_.dtype));
    }
    add({form_.name.empty() ? form_.key : form_.name, {form_.dtype, form_.shape}});
  }

  void read(const json& record, ItemMemory out) const override {
    const json* const value = key_.find(record);
    std::byte* to = out[0].data();
    if ((value == nullptr || value->is_null()) && form_.missing) {
      const auto bytes = static_cast<std::size_t>(byte_size(form_.dtype));
      for (std::size_t i = 0; i < out[0].size(); i += bytes) {
        store_element(form_.dtype, *form_.missing, to + i);
      }
      return;
    }
    if (value == nullptr) refuse_value(key_, value, "a value; add the key, or set .missing");
    store(*value, 0, to);
  }

 private:
  void store(const json& value, int dim, std::byte*& to) const {
    if (dim == form_.shape.size()) {
      if (!store_value(form_, value, to)) {
        refuse_value(key_, &value, fmt::format("a number of dtype {}", to_string(form_.dtype)));
      }
      to += byte_size(form_.dtype);
      return;
    }
    const std::int64_t count = form_.shape[dim];
    if (!value.is_array() || std::ssize(value) != count) {
      refuse_value(key_, &value,
                   fmt::format("a list of {} elements in dim {} of ({}){}", count, dim,
                               form_.shape.to_string(),
                               value.is_array() ? fmt::format(", not of {}", value.size()) : ""));
    }
    for (const json& element : value) store(element, dim + 1, to);
  }

  const JsonNumbers form_;
  const JsonKey key_;
};

const std::string& text_of(const JsonKey& key, const json& record) {
  const json* const value = key.find(record);
  if (value == nullptr || !value->is_string()) refuse_value(key, value, "a text");
  return value->get_ref<const std::string&>();
}

class TokensReader : public JsonReader {
 public:
  explicit TokensReader(const JsonTokens& form) : key_(form.key), tokens_(form.tokens) {
    if (!form.second.empty()) second_.emplace(form.second);
    for (const Field& field : tokens_.fields()) add(field);
  }

  void read(const json& record, ItemMemory out) const override {
    const std::string& text = text_of(key_, record);
    if (!second_) return tokens_.write(text, nullptr, out);
    const std::string_view second = text_of(*second_, record);
    tokens_.write(text, &second, out);
  }

 private:
  const JsonKey key_;
  std::optional<JsonKey> second_;
  const TokenFields tokens_;
};

class BytesReader : public JsonReader {
 public:
  explicit BytesReader(const JsonBytes& form) : key_(form.key) {
    if (form.length < 1) {
      fail(Errc::invalid_argument, "key '{}': length = {}: expected 1 or more", form.key,
           form.length);
    }
    add({form.name.empty() ? form.key : form.name, {DType::u8, {form.length}}});
  }

  void read(const json& record, ItemMemory out) const override {
    const std::string& text = text_of(key_, record);
    if (text.size() > out[0].size()) {
      fail(Errc::corrupt, "key '{}': has {} bytes, but length is {}; raise length", key_.text(),
           text.size(), out[0].size());
    }
    const auto rest = std::ranges::copy(std::as_bytes(std::span(text)), out[0].begin()).out;
    std::fill(rest, out[0].end(), std::byte{0});
  }

 private:
  const JsonKey key_;
};

std::unique_ptr<const JsonReader> reader_of(const JsonField& field) {
  if (const auto* const numbers = std::get_if<JsonNumbers>(&field)) {
    return std::make_unique<const NumbersReader>(*numbers);
  }
  if (const auto* const tokens = std::get_if<JsonTokens>(&field)) {
    return std::make_unique<const TokensReader>(*tokens);
  }
  return std::make_unique<const BytesReader>(std::get<JsonBytes>(field));
}

class JsonLines : public Dataset {
 public:
  JsonLines(const std::string& path, const std::vector<JsonField>& fields)
      : lines_(path, EmptyLines::left_out) {
    of_file(path, [&] {
      for (const JsonField& field : fields) {
        readers_.push_back(reader_of(field));
        const std::vector<Field>& made = readers_.back()->fields();
        fields_.insert(fields_.end(), made.begin(), made.end());
      }
    });
    check_fields(path, fields_);
  }

  std::string name() const override { return lines_.file().path(); }
  std::int64_t size() const override { return lines_.size(); }
  const std::vector<Field>& fields() const override { return fields_; }

 private:
  void read_item(const Item& item, ItemMemory out) const override {
    try {
      const json record = parse_json_record(lines_.read(item.index));
      std::size_t begin = 0;
      for (const auto& reader : readers_) {
        const std::size_t count = reader->fields().size();
        reader->read(record, out.subspan(begin, count));
        begin += count;
      }
    } catch (const Error& error) {
      fail(error.code(), "line {}: {}", lines_.number(item.index), error.what());
    }
  }

  const TextLines lines_;
  std::vector<std::unique_ptr<const JsonReader>> readers_;
  std::vector<Field> fields_;
};

}  // namespace

DatasetPtr json_lines(const std::string& path, std::vector<JsonField> fields) {
  return std::make_shared<const JsonLines>(path, fields);
}

}  // namespace weft
