#include "data/pytorch/unpickler.hpp"

#include <utility>

#include "data/formats/in_quotes.hpp"
#include "data/pytorch/pickle.hpp"

namespace weft {
namespace {

/// The largest number of arguments of a function that rebuilds a tensor or a storage.
constexpr std::size_t kArgumentsMax = 16;
constexpr std::int64_t kStorageElementsMax = std::int64_t{1} << 56;

[[noreturn]] void refuse_global(std::string_view module, std::string_view name) {
  fail(Errc::version,
       "pickle: uses {} of {}, but weft reads only tensors and plain containers, and runs no code "
       "of a file; save only the tensors, for example by torch.save(model.state_dict(), path)",
       in_quotes(name), in_quotes(module));
}

void require_room(std::size_t count) {
  if (count < kPickleValuesMax) return;
  refuse_pickle("has more than {} values", kPickleValuesMax);
}

}  // namespace

std::string_view PickleBytes::take(std::uint64_t count) {
  if (count > bytes_.size() - at_) {
    refuse_pickle("ends within a value at byte {}; was the file cut off?", at_);
  }
  const std::string_view taken = bytes_.substr(at_, static_cast<std::size_t>(count));
  at_ += taken.size();
  return taken;
}

std::uint64_t PickleBytes::number(std::size_t count) {
  const std::string_view digits = take(count);
  std::uint64_t value = 0;
  for (std::size_t i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(digits[i]);
  return value;
}

std::string_view PickleBytes::line() {
  const std::size_t end = bytes_.find('\n', at_);
  if (end == std::string_view::npos) refuse_pickle("a line at byte {} doesn't end", at_);
  const std::string_view taken = bytes_.substr(at_, end - at_);
  at_ = end + 1;
  return taken;
}

PickleId Unpickler::run() {
  for (;;) {
    const char opcode = bytes_.take(1).front();
    if (opcode == '.') break;
    if (run_atom(opcode) || run_container(opcode) || run_memo(opcode) || run_object(opcode)) {
      continue;
    }
    fail(Errc::version,
         "pickle: opcode {:#04x} at byte {} isn't one that tensors and plain containers need",
         static_cast<unsigned char>(opcode), bytes_.at() - 1);
  }
  if (!bytes_.is_at_end()) refuse_pickle("has bytes after its end");
  if (stack_.size() != 1) {
    refuse_pickle("ends with {} values on its stack, not with one", stack_.size());
  }
  return stack_.front();
}

bool Unpickler::push(PickleValue value) {
  require_room(values_.size());
  values_.push_back(std::move(value));
  return push_again(static_cast<PickleId>(values_.size() - 1));
}

bool Unpickler::push_again(PickleId id) {
  require_room(stack_.size());
  stack_.push_back(id);
  return true;
}

/// Skips the bytes of a value that can't contain tensors, and pushes a value of kind `other` in its
/// place.
bool Unpickler::push_other(std::uint64_t skipped) {
  bytes_.take(skipped);
  return push({});
}

bool Unpickler::push_long(std::size_t size) {
  const std::string_view digits = bytes_.take(size);
  if (size > sizeof(std::int64_t)) return push({});  // too large for a size or offset of a tensor
  std::uint64_t value = size > 0 && (digits.back() & '\x80') != 0 ? ~std::uint64_t{0} : 0;
  for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(digits[i]);
  return push_integer(static_cast<std::int64_t>(value));
}

bool Unpickler::push_dict(Ids items) {
  if (items.size() % 2 != 0) refuse_pickle("a dict has a key without a value");
  return push({.kind = Kind::dict, .items = std::move(items)});
}

PickleId Unpickler::pop() {
  if (above_mark() == 0) {
    refuse_pickle("takes a value from an empty stack at byte {}", bytes_.at());
  }
  const PickleId id = stack_.back();
  stack_.pop_back();
  return id;
}

Unpickler::Ids Unpickler::pop_items(std::size_t count) {
  Ids items(count);
  for (std::size_t i = count; i-- > 0;) items[i] = pop();
  return items;
}

Unpickler::Ids Unpickler::pop_to_mark() {
  if (marks_.empty()) refuse_pickle("has no mark at byte {}", bytes_.at());
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  Ids items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return items;
}

PickleValue& Unpickler::top(Kind kind, const char* what) {
  if (above_mark() == 0 || values_[stack_.back()].kind != kind) {
    refuse_pickle("adds to a value that isn't a {} at byte {}", what, bytes_.at());
  }
  return values_[stack_.back()];
}

Unpickler::Ids Unpickler::arguments_of(PickleId id) const {
  const PickleValue& value = values_[id];
  if (value.kind != Kind::list || value.items.size() > kArgumentsMax) {
    refuse_pickle("the arguments of a function aren't a tuple of at most {} values at byte {}",
                  kArgumentsMax, bytes_.at());
  }
  return value.items;
}

const PickleValue& Unpickler::argument(const Ids& arguments, std::size_t i, Kind kind) const {
  if (i >= arguments.size() || values_[arguments[i]].kind != kind) {
    refuse_pickle("a tensor, a storage or a class has wrong arguments at byte {}", bytes_.at());
  }
  return values_[arguments[i]];
}

/// Runs the opcode if it is PROTO or FRAME, or pushes a value without parts, such as a number or a
/// text. Returns false for other opcodes.
bool Unpickler::run_atom(char opcode) {
  switch (opcode) {
    case '\x80':  // PROTO
      if (const std::uint64_t version = bytes_.number(1); version < 2 || version > 5) {
        fail(Errc::version, "pickle: protocol {}; expected 2 to 5", version);
      }
      return true;
    case '\x95': bytes_.take(8); return true;                                    // FRAME
    case 'N':                                                                    // NONE
    case '\x88':                                                                 // NEWTRUE
    case '\x89': return push_other(0);                                           // NEWFALSE
    case 'G': return push_other(8);                                              // BINFLOAT
    case 'K': return push_integer(static_cast<std::int64_t>(bytes_.number(1)));  // BININT1
    case 'M': return push_integer(static_cast<std::int64_t>(bytes_.number(2)));  // BININT2
    case 'J': return push_integer(static_cast<std::int32_t>(bytes_.number(4)));  // BININT
    case '\x8a': return push_long(bytes_.number(1));                             // LONG1
    case '\x8b': return push_long(bytes_.number(4));                             // LONG4
    case 'U':                                                                    // SHORT_BINSTRING
    case '\x8c': return push_text(bytes_.number(1));                             // SHORT_BINUNICODE
    case 'T':                                                                    // BINSTRING
    case 'X': return push_text(bytes_.number(4));                                // BINUNICODE
    case '\x8d': return push_text(bytes_.number(8));                             // BINUNICODE8
    case 'C': return push_other(bytes_.number(1));                               // SHORT_BINBYTES
    case 'B': return push_other(bytes_.number(4));                               // BINBYTES
    case '\x8e':                                                                 // BINBYTES8
    case '\x96': return push_other(bytes_.number(8));                            // BYTEARRAY8
    default: return false;
  }
}

bool Unpickler::run_container(char opcode) {
  switch (opcode) {
    case '(':  // MARK
      require_room(marks_.size());
      marks_.push_back(stack_.size());
      return true;
    case ')':                                      // EMPTY_TUPLE
    case ']':                                      // EMPTY_LIST
    case '\x8f': return push_list({});             // EMPTY_SET
    case '}': return push_dict({});                // EMPTY_DICT
    case '\x85': return push_list(pop_items(1));   // TUPLE1
    case '\x86': return push_list(pop_items(2));   // TUPLE2
    case '\x87': return push_list(pop_items(3));   // TUPLE3
    case 't':                                      // TUPLE
    case 'l':                                      // LIST
    case '\x91': return push_list(pop_to_mark());  // FROZENSET
    case 'd': return push_dict(pop_to_mark());     // DICT
    case 'a':                                      // APPEND
    case 'e':                                      // APPENDS
    case '\x90': {                                 // ADDITEMS
      const Ids items = opcode == 'a' ? pop_items(1) : pop_to_mark();
      Ids& all = top(Kind::list, "list or set").items;
      all.insert(all.end(), items.begin(), items.end());
      return true;
    }
    case 's':    // SETITEM
    case 'u': {  // SETITEMS
      const Ids items = opcode == 's' ? pop_items(2) : pop_to_mark();
      if (items.size() % 2 != 0) refuse_pickle("a dict has a key without a value");
      Ids& all = top(Kind::dict, "dict").items;
      all.insert(all.end(), items.begin(), items.end());
      return true;
    }
    default: return false;
  }
}

bool Unpickler::remember(std::uint64_t number) {
  if (above_mark() == 0) {
    refuse_pickle("stores a value from an empty stack at byte {}", bytes_.at());
  }
  // Python numbers the entries of the memo in order, so no number may be skipped.
  if (number > memo_.size()) {
    refuse_pickle("stores value number {} after {} values", number, memo_.size());
  }
  if (number == memo_.size()) {
    require_room(memo_.size());
    memo_.push_back(0);
  }
  memo_[static_cast<std::size_t>(number)] = stack_.back();
  return true;
}

bool Unpickler::recall(std::uint64_t number) {
  if (number >= memo_.size())
    refuse_pickle("reads stored value number {} of {}", number, memo_.size());
  return push_again(memo_[static_cast<std::size_t>(number)]);
}

bool Unpickler::run_memo(char opcode) {
  switch (opcode) {
    case 'q': return remember(bytes_.number(1));  // BINPUT
    case 'r': return remember(bytes_.number(4));  // LONG_BINPUT
    case '\x94': return remember(memo_.size());   // MEMOIZE
    case 'h': return recall(bytes_.number(1));    // BINGET
    case 'j': return recall(bytes_.number(4));    // LONG_BINGET
    case '0': (void)pop(); return true;           // POP
    case '1': (void)pop_to_mark(); return true;   // POP_MARK
    default: return false;
  }
}

bool Unpickler::run_object(char opcode) {
  switch (opcode) {
    case 'c': {  // GLOBAL
      const std::string_view module = bytes_.line();
      return push_global(module, bytes_.line());
    }
    case '\x93': {  // STACK_GLOBAL
      const Ids names = pop_items(2);
      return push_global(argument(names, 0, Kind::text).text, argument(names, 1, Kind::text).text);
    }
    case 'Q': return push_storage();  // BINPERSID
    case 'R': return call();          // REDUCE
    case 'b': {                       // BUILD: attributes, such as a state_dict's versions
      (void)pop();
      if (above_mark() == 0)
        refuse_pickle("sets attributes without an object at byte {}", bytes_.at());
      const Kind kind = values_[stack_.back()].kind;
      if (kind != Kind::dict && kind != Kind::tensor) {
        refuse_pickle("sets attributes of a plain value at byte {}", bytes_.at());
      }
      return true;
    }
    default: return false;
  }
}

bool Unpickler::push_global(std::string_view module, std::string_view name) {
  const auto known = find_pickle_global(module, name);
  if (!known) refuse_global(module, name);
  return push({.kind = Kind::global, .global = known->global, .element = known->element});
}

/// Pushes the storage whose id is on the stack. The parts of the id are "storage" and the storage's
/// class, key, device and number of elements (of bytes if it is untyped).
bool Unpickler::push_storage() {
  const Ids parts = arguments_of(pop());
  const PickleValue& of = argument(parts, 1, Kind::global);
  const std::int64_t count = argument(parts, 4, Kind::integer).number;
  if (argument(parts, 0, Kind::text).text != "storage" || of.global != PickleGlobal::storage) {
    refuse_pickle("refers to something that isn't a storage at byte {}", bytes_.at());
  }
  if (count < 0 || count > kStorageElementsMax) refuse_pickle("a storage has {} elements", count);
  return push({.kind = Kind::storage,
               .element = of.element,
               .number = count * (of.element != nullptr ? of.element->bytes : 1),
               .text = argument(parts, 2, Kind::text).text});
}

/// Makes a tensor. The arguments are the storage, the offset of the first element in the storage,
/// the sizes and the strides. If the storage is untyped, the seventh argument is the dtype.
bool Unpickler::call_tensor(const Ids& arguments, bool has_dtype) {
  const PickleValue& storage = argument(arguments, 0, Kind::storage);
  const TorchElement* element =
      has_dtype ? argument(arguments, 6, Kind::global).element : storage.element;
  const std::int64_t offset = argument(arguments, 1, Kind::integer).number;
  (void)argument(arguments, 2, Kind::list);
  (void)argument(arguments, 3, Kind::list);
  if (element == nullptr) refuse_pickle("a tensor has no dtype at byte {}", bytes_.at());
  return push({.kind = Kind::tensor,
               .element = element,
               .number = offset,
               .items = {arguments[0], arguments[2], arguments[3]}});
}

bool Unpickler::call() {
  const Ids taken = pop_items(2);
  const PickleGlobal function = argument(taken, 0, Kind::global).global;
  const Ids arguments = arguments_of(taken[1]);
  switch (function) {
    case PickleGlobal::ordered_dict:
      if (arguments.empty()) return push_dict({});
      break;
    case PickleGlobal::set:
    case PickleGlobal::size:
      if (arguments.empty()) return push_list({});
      (void)argument(arguments, 0, Kind::list);
      return push_again(arguments[0]);
    case PickleGlobal::encode:
    case PickleGlobal::device: return push({});
    case PickleGlobal::rebuild_tensor: return call_tensor(arguments, false);
    case PickleGlobal::rebuild_tensor_v3: return call_tensor(arguments, true);
    case PickleGlobal::rebuild_parameter:
      (void)argument(arguments, 0, Kind::tensor);
      return push_again(arguments[0]);
    case PickleGlobal::rebuild_from_type: {
      const PickleGlobal rebuild = argument(arguments, 0, Kind::global).global;
      (void)argument(arguments, 2, Kind::list);
      const Ids of = arguments_of(arguments[2]);
      if (rebuild == PickleGlobal::rebuild_tensor) return call_tensor(of, false);
      if (rebuild == PickleGlobal::rebuild_tensor_v3) return call_tensor(of, true);
      break;
    }
    case PickleGlobal::tensor_class:
    case PickleGlobal::dtype:
    case PickleGlobal::storage: break;
  }
  refuse_pickle("calls something that isn't a tensor function at byte {}", bytes_.at());
}

}  // namespace weft
