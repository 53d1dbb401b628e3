#include <weft/dataset.hpp>

#include <cstring>

#include <weft/error.hpp>

#include "spmd/data/fields.hpp"

namespace weft {
namespace {

/// An Error that has the dataset's name and the index already: the datasets around it let it pass.
class ItemError : public Error {
 public:
  ItemError(Errc code, const Dataset& dataset, const Item& item, std::string_view what)
      : Error(code, fmt::format("{}: item {} of epoch {}: {}", dataset.name(), item.index,
                                item.epoch, what)) {}
};

std::size_t bytes_of(const Field& field) { return static_cast<std::size_t>(field.type.bytes()); }

void check_memory(const Dataset& dataset, ItemMemory out) {
  const std::vector<Field>& fields = dataset.fields();
  if (out.size() != fields.size()) {
    fail(Errc::invalid_argument, "{}: memory for {} fields; it has {}: {}", dataset.name(),
         out.size(), fields.size(), fields_text(fields));
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto align = static_cast<std::uintptr_t>(byte_size(fields[i].type.dtype));
    if (out[i].size() == bytes_of(fields[i]) &&
        reinterpret_cast<std::uintptr_t>(out[i].data()) % align == 0) {
      continue;
    }
    fail(Errc::invalid_argument,
         "{}: field '{}': memory of {} bytes at {}: {} needs {}, at a multiple of {}",
         dataset.name(), fields[i].name, out[i].size(), static_cast<const void*>(out[i].data()),
         fields[i].type.to_string(), bytes_of(fields[i]), align);
  }
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
        fail(Errc::invalid_argument, "{}: '{}' has {} elements, no multiple of {}, an item of {}",
             name_, fields_[i].name, arrays_[i].elements.size(), per_item,
             fields_[i].type.to_string());
      }
      const std::int64_t items = arrays_[i].elements.size() / per_item;
      if (i == 0) size_ = items;
      if (items != size_) {
        fail(Errc::invalid_argument, "{}: '{}' has {} items, and '{}' has {}", name_,
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

void Dataset::read(const Item& item, ItemMemory out) const {
  if (item.index < 0 || item.index >= size()) {
    fail(Errc::invalid_argument, "{}: item {}: it has {} items", name(), item.index, size());
  }
  check_memory(*this, out);
  try {
    read_item(item, out);
  } catch (const ItemError&) {
    throw;
  } catch (const Error& error) {
    throw ItemError(error.code(), *this, item, error.what());
  } catch (const std::exception& error) {
    throw ItemError(Errc::loop_failed, *this, item, error.what());
  }
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
    fail(Errc::invalid_argument, "field '{}' is {}, and was asked for as {}", fields[number].name,
         fields[number].type.to_string(), to_string(dtype));
  }
  return number;
}

ItemBuffer::ItemBuffer(std::vector<Field> fields) : fields_(std::move(fields)) {
  constexpr std::size_t kAlignment = 8;  // of the largest element
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
