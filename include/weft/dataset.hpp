#pragma once
/// Dataset: numbered items of one form, read from any thread straight to the place where they are
/// needed. Datasets of files are in <weft/data_files.hpp>, orders of items in <weft/sampler.hpp>.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <weft/element.hpp>
#include <weft/item_random.hpp>
#include <weft/type.hpp>

namespace weft {

/// A part of each item, such as "x", f32[28,28].
struct Field {
  std::string name{};
  TensorType type{};

  friend bool operator==(const Field&, const Field&) = default;
};

/// Memory of an item, a span for each field.
using ItemMemory = std::span<const std::span<std::byte>>;

/// Immutable: every call may come from any thread at any time, and equal calls give equal bytes.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// For errors: a path, "zip(images.npy, labels.npy)".
  virtual std::string name() const = 0;
  virtual std::int64_t size() const = 0;
  /// Alike for all items. Names aren't empty and there once.
  virtual const std::vector<Field>& fields() const = 0;

  /// Writes each field of an item, row-major, to its span of `out`. Throws invalid_argument for an
  /// index outside 0..size()-1 and for spans of other sizes than the fields', or not aligned to
  /// their elements. What read_item() throws gets the name of the dataset and the index: an Error
  /// keeps its code, any other exception is loop_failed.
  void read(const Item& item, ItemMemory out) const;

 private:
  /// As read(), whose checks have been passed.
  virtual void read_item(const Item& item, ItemMemory out) const = 0;
};

using DatasetPtr = std::shared_ptr<const Dataset>;

namespace detail {
/// The number of the field. Throws invalid_argument if there is none, or of another dtype.
std::size_t find_field(const std::vector<Field>& fields, std::string_view name, DType dtype);
std::size_t check_field(const std::vector<Field>& fields, std::size_t number, DType dtype);
}  // namespace detail

/// The elements of an item that somebody else holds. `Byte`: const std::byte if they are only read.
template <typename Byte>
class BasicItemView {
  template <typename T>
  using Element = std::conditional_t<std::is_const_v<Byte>, const T, T>;

 public:
  BasicItemView(const std::vector<Field>& fields, ItemMemory memory)
      : fields_(&fields), memory_(memory) {}

  const std::vector<Field>& fields() const { return *fields_; }
  /// Throws invalid_argument if no field has the name, or it has another dtype than T's.
  template <ChipElement T>
  std::span<Element<T>> get(std::string_view name) const {
    return elements<T>(detail::find_field(*fields_, name, *dtype_of<T>()));
  }
  template <ChipElement T>
  std::span<Element<T>> get(std::size_t field) const {
    return elements<T>(detail::check_field(*fields_, field, *dtype_of<T>()));
  }

 private:
  template <typename T>
  std::span<Element<T>> elements(std::size_t field) const {
    const std::span<std::byte> bytes = memory_[field];
    return {reinterpret_cast<Element<T>*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  const std::vector<Field>* fields_;
  ItemMemory memory_;
};
using ItemView = BasicItemView<const std::byte>;
using ItemWriter = BasicItemView<std::byte>;

/// An item with memory of its own.
class ItemBuffer {
 public:
  explicit ItemBuffer(std::vector<Field> fields);

  ItemMemory memory() const { return spans_; }
  ItemView view() const { return {fields_, spans_}; }

 private:
  std::vector<Field> fields_;
  std::unique_ptr<std::byte[]> bytes_;
  std::vector<std::span<std::byte>> spans_;
};
/// One item, for a look at it.
ItemBuffer read_item(const Dataset& dataset, const Item& item);

/// Items in memory, one behind the other.
struct Array {
  std::string name;
  ConstElementSpan elements;
  Shape item_shape{};  ///< default: an item is one element
  std::shared_ptr<const void> owner{};

  /// Elements that stay where they are; they must outlive the dataset, or have an `owner`.
  Array(std::string array_name, ConstElementSpan borrowed, Shape shape = {},
        std::shared_ptr<const void> kept = nullptr)
      : name(std::move(array_name)), elements(borrowed), item_shape(shape), owner(kept) {}
  /// Elements that the dataset takes over.
  template <ChipElement T>
  Array(std::string array_name, std::vector<T>&& taken, Shape shape = {})
      : Array(std::move(array_name), std::make_shared<const std::vector<T>>(std::move(taken)),
              shape) {}

 private:
  template <typename T>
  Array(std::string array_name, std::shared_ptr<const std::vector<T>> taken, Shape shape)
      : Array(std::move(array_name), ConstElementSpan(*taken), shape, taken) {}
};
/// Throws invalid_argument unless the arrays are of equally many items.
DatasetPtr tensors(std::vector<Array> arrays, std::string name = "tensors");

}  // namespace weft
