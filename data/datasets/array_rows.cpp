#include "data/datasets/array_rows.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <weft/tensor/error.hpp>

#include "data/items/fields.hpp"

namespace weft {
namespace {

class ArrayRows : public Dataset {
 public:
  ArrayRows(std::string name, std::vector<StoredArray> arrays)
      : name_(std::move(name)), arrays_(std::move(arrays)) {
    for (const StoredArray& array : arrays_) {
      if (array.shape.size() == 0) {
        fail(Errc::invalid_argument, "{}: '{}' is a scalar, which has no items", name_, array.name);
      }
      const Shape item(std::span<const std::int64_t>(array.shape).subspan(1));
      if (item.num_elements() == 0) {
        fail(Errc::invalid_argument, "{}: '{}' has shape ({}): its items are empty", name_,
             array.name, array.shape.to_string());
      }
      if (array.shape[0] != arrays_[0].shape[0]) {
        fail(Errc::invalid_argument, "{}: '{}' has {} items, but '{}' has {}", name_,
             arrays_[0].name, arrays_[0].shape[0], array.name, array.shape[0]);
      }
      fields_.push_back({array.name, {array.cast.to, item}});
    }
    check_fields(name_, fields_);
  }

  std::string name() const override { return name_; }
  std::int64_t size() const override { return arrays_[0].shape[0]; }
  const std::vector<Field>& fields() const override { return fields_; }

 private:
  void read_item(const Item& item, ItemMemory out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      try {
        read_row(arrays_[i], static_cast<std::uint64_t>(item.index), out[i]);
      } catch (const Error& error) {
        fail(error.code(), "field '{}': {}", fields_[i].name, error.what());
      }
    }
  }

  static void read_row(const StoredArray& array, std::uint64_t row, std::span<std::byte> out) {
    const auto from_bytes = static_cast<std::size_t>(array.cast.from.bytes);
    const auto to_bytes = static_cast<std::size_t>(byte_size(array.cast.to));
    const std::size_t row_bytes = out.size() / to_bytes * from_bytes;
    const std::uint64_t begin = array.data_begin + row * row_bytes;
    if (array.is_unpacked) {
      take(array, std::span(array.unpacked).subspan(begin, row_bytes), out);
    } else if (array.cast.is_copy()) {
      array.file->read(begin, out);
      if (array.cast.to == DType::pred) check_bools(out);
    } else {
      // The number of bytes that are converted at once. It is a multiple of every element size, so
      // that no element is split.
      constexpr std::size_t kPieceBytes = std::size_t{8} << 10;
      std::array<std::byte, kPieceBytes> piece;
      for (std::size_t done = 0; done < row_bytes; done += kPieceBytes) {
        const auto stored = std::span(piece).first(std::min(kPieceBytes, row_bytes - done));
        array.file->read(begin + done, stored);
        cast_elements(
            array.cast, stored,
            out.subspan(done / from_bytes * to_bytes, stored.size() / from_bytes * to_bytes));
      }
    }
  }

  static void take(const StoredArray& array, std::span<const std::byte> stored,
                   std::span<std::byte> out) {
    if (!array.cast.is_copy()) return cast_elements(array.cast, stored, out);
    if (array.cast.to == DType::pred) check_bools(stored);
    std::ranges::copy(stored, out.begin());
  }

  const std::string name_;
  const std::vector<StoredArray> arrays_;
  std::vector<Field> fields_;
};

}  // namespace

DatasetPtr array_rows(std::string name, std::vector<StoredArray> arrays) {
  if (arrays.empty()) fail(Errc::invalid_argument, "{}: has no arrays", name);
  return std::make_shared<const ArrayRows>(std::move(name), std::move(arrays));
}

}  // namespace weft
