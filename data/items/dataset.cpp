#include <weft/data/dataset.hpp>

#include <algorithm>
#include <cstring>

#include <weft/tensor/error.hpp>

#include "data/items/fields.hpp"
#include "data/items/item_reading.hpp"

namespace weft {
namespace {

std::size_t bytes_of(const Field& field) { return static_cast<std::size_t>(field.type.bytes()); }

bool fits_field(const Field& field, std::span<const std::byte> memory) {
  const auto align = static_cast<std::uintptr_t>(byte_size(field.type.dtype));
  return memory.size() == bytes_of(field) &&
         reinterpret_cast<std::uintptr_t>(memory.data()) % align == 0;
}

class Tensors : public Dataset {
 public:
  Tensors(std::vector<Array> arrays, std::string name)
      : arrays_(std::move(arrays)), name_(std::move(name)) {
    for (const Array& array : arrays_) {
      fields_.push_back({array.name, {array.elements.dtype(), array.item_shape}});
    }
    check_fields(name_, fields_);
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      const std::int64_t per_item = fields_[i].type.num_elements();
      if (per_item == 0 || arrays_[i].elements.size() % per_item != 0) {
        fail(Errc::invalid_argument,
             "{}: '{}' has {} elements: expected a multiple of {}, for items of type {}", name_,
             fields_[i].name, arrays_[i].elements.size(), per_item, fields_[i].type.to_string());
      }
      const std::int64_t items = arrays_[i].elements.size() / per_item;
      if (i == 0) size_ = items;
      if (items != size_) {
        fail(Errc::invalid_argument, "{}: '{}' has {} items, but '{}' has {}", name_,
             fields_[0].name, size_, fields_[i].name, items);
      }
    }
  }

  std::string name() const override { return name_; }
  std::int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }

 private:
  void read_item(const Item& item, ItemMemory out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (out[i].empty()) continue;
      const std::size_t begin = static_cast<std::size_t>(item.index) * out[i].size();
      std::memcpy(out[i].data(), arrays_[i].elements.data() + begin, out[i].size());
    }
  }

  const std::vector<Array> arrays_;
  const std::string name_;
  std::vector<Field> fields_;
  std::int64_t size_ = 0;
};

}  // namespace

bool fits(const std::vector<Field>& fields, ItemMemory out) {
  return std::ranges::equal(fields, out, fits_field);
}

void refuse_memory(std::string_view name, const std::vector<Field>& fields, ItemMemory out) {
  if (out.size() != fields.size()) {
    fail(Errc::invalid_argument, "{}: memory is given for {} fields, but the items have {}: {}",
         name, out.size(), fields.size(), fields_text(fields));
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fits_field(fields[i], out[i])) continue;
    fail(Errc::invalid_argument,
         "{}: field '{}': memory has {} bytes at {}: {} needs {} bytes, at a multiple of {}", name,
         fields[i].name, out[i].size(), static_cast<const void*>(out[i].data()),
         fields[i].type.to_string(), bytes_of(fields[i]), byte_size(fields[i].type.dtype));
  }
  WEFT_CHECK(false, name);
}

void Dataset::read(const Item& item, ItemMemory out) const {
  if (item.index < 0 || item.index >= size()) {
    fail(Errc::invalid_argument, "{}: item {} is out of range: there are {} items", name(),
         item.index, size());
  }
  check_memory(*this, out);
  read_named(*this, item, [&] { read_item(item, out); });
}

std::size_t detail::find_field(const std::vector<Field>& fields, std::string_view name,
                               DType dtype) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) return check_field(fields, i, dtype);
  }
  fail(Errc::invalid_argument, "there is no field '{}'; there are: {}", name, fields_text(fields));
}

std::size_t detail::check_field(const std::vector<Field>& fields, std::size_t number, DType dtype) {
  if (number >= fields.size()) {
    fail(Errc::invalid_argument, "there is no field {}; there are: {}", number,
         fields_text(fields));
  }
  if (fields[number].type.dtype != dtype) {
    fail(Errc::invalid_argument, "field '{}' is {}, but was requested as {}", fields[number].name,
         fields[number].type.to_string(), to_string(dtype));
  }
  return number;
}

ItemBuffer::ItemBuffer(std::vector<Field> fields) : fields_(std::move(fields)) {
  constexpr std::size_t kAlignment = 8;  // alignment of the largest element
  std::size_t size = 0;
  for (const Field& field : fields_) {
    size += (bytes_of(field) + kAlignment - 1) / kAlignment * kAlignment;
  }
  bytes_ = std::make_unique_for_overwrite<std::byte[]>(size);
  std::byte* at = bytes_.get();
  for (const Field& field : fields_) {
    spans_.emplace_back(at, bytes_of(field));
    at += (bytes_of(field) + kAlignment - 1) / kAlignment * kAlignment;
  }
}

ItemBuffer read_item(const Dataset& dataset, const Item& item) {
  ItemBuffer buffer(dataset.fields());
  dataset.read(item, buffer.memory());
  return buffer;
}

DatasetPtr tensors(std::vector<Array> arrays, std::string name) {
  return std::make_shared<const Tensors>(std::move(arrays), std::move(name));
}

}  // namespace weft
