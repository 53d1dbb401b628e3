#pragma once
/// Unpickler: runs pickle's opcodes (Python's module pickletools lists them). It stores all values
/// in one table, in which they refer to each other by number, so that cycles and deep nesting take
/// no stack.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <weft/tensor/error.hpp>

#include "data/pytorch/pickle_globals.hpp"

namespace weft {

/// The number of a value in the table of values.
using PickleId = std::uint32_t;

struct PickleValue {
  enum class Kind : std::uint8_t { other, integer, text, list, dict, global, storage, tensor };
  Kind kind = Kind::other;
  PickleGlobal global = PickleGlobal::ordered_dict;  ///< which global it is, if it is a global
  const TorchElement* element = nullptr;             ///< type of a global, a storage or a tensor
  std::int64_t number = 0;  ///< an integer's value, a storage's bytes, or a tensor's offset
  std::string_view text{};  ///< a part of the pickle; the key of a storage
  /// The parts of the value. A list, a tuple or a set has its items; a dict has key, value, key,
  /// value, ...; a tensor has its storage, the list of its sizes and the list of its strides.
  std::vector<PickleId> items{};
};

/// Throws corrupt with this message.
template <typename... Args>
[[noreturn]] void refuse_pickle(fmt::format_string<Args...> format, Args&&... args) {
  fail(Errc::corrupt, "pickle: {}", fmt::format(format, std::forward<Args>(args)...));
}

/// Reads the bytes of a pickle in order.
class PickleBytes {
 public:
  explicit PickleBytes(std::span<const std::byte> bytes)
      : bytes_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {}

  std::string_view take(std::uint64_t count);
  /// Reads a little-endian number of `count` bytes.
  std::uint64_t number(std::size_t count);
  /// Reads the bytes up to a newline, and skips the newline.
  std::string_view line();
  bool is_at_end() const { return at_ == bytes_.size(); }
  std::size_t at() const { return at_; }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

/// Runs one pickle. Throws like read_torch_pickle(). The pickle must outlive the values.
class Unpickler {
 public:
  explicit Unpickler(std::span<const std::byte> pickle) : bytes_(pickle) {}

  /// Runs the pickle and returns its value.
  PickleId run();
  const PickleValue& at(PickleId id) const { return values_[id]; }

 private:
  using Kind = PickleValue::Kind;
  using Ids = std::vector<PickleId>;

  bool push(PickleValue value);
  bool push_integer(std::int64_t number) { return push({.kind = Kind::integer, .number = number}); }
  bool push_long(std::size_t size);
  bool push_text(std::uint64_t size) {
    return push({.kind = Kind::text, .text = bytes_.take(size)});
  }
  bool push_other(std::uint64_t skipped);
  bool push_list(Ids items) { return push({.kind = Kind::list, .items = std::move(items)}); }
  bool push_dict(Ids items);
  bool push_again(PickleId id);
  bool push_global(std::string_view module, std::string_view name);
  bool push_storage();

  /// Returns the number of values above the last mark. Values below the mark can't be popped.
  std::size_t above_mark() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }
  PickleId pop();
  Ids pop_items(std::size_t count);
  Ids pop_to_mark();
  PickleValue& top(Kind kind, const char* what);
  Ids arguments_of(PickleId id) const;
  const PickleValue& argument(const Ids& arguments, std::size_t i, Kind kind) const;

  bool run_atom(char opcode);
  bool run_container(char opcode);
  bool run_memo(char opcode);
  bool run_object(char opcode);
  bool remember(std::uint64_t number);
  bool recall(std::uint64_t number);
  bool call();
  bool call_tensor(const Ids& arguments, bool has_dtype);

  PickleBytes bytes_;
  std::vector<PickleValue> values_;
  Ids stack_;
  std::vector<std::size_t> marks_;
  Ids memo_;
};

}  // namespace weft
