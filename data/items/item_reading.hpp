#pragma once
/// Makes the checks of Dataset::read() and Stream::next(), and adds names to their errors.

#include <exception>
#include <string_view>
#include <vector>

#include <weft/data/dataset.hpp>
#include <weft/tensor/error.hpp>

namespace weft {

bool fits(const std::vector<Field>& fields, ItemMemory out);
[[noreturn]] void refuse_memory(std::string_view name, const std::vector<Field>& fields,
                                ItemMemory out);
/// Throws invalid_argument unless the memory fits the fields. `source` has a name() and fields().
template <typename Source>
void check_memory(const Source& source, ItemMemory out) {
  if (!fits(source.fields(), out)) refuse_memory(source.name(), source.fields(), out);
}

/// An Error whose message already has a dataset's name and the item's index. Enclosing datasets
/// rethrow it unchanged.
class ItemError : public Error {
 public:
  ItemError(Errc code, std::string_view name, const Item& item, std::string_view what)
      : Error(code,
              fmt::format("{}: item {} of epoch {}: {}", name, item.index, item.epoch, what)) {}
};

/// The message for an exception that has no text.
inline constexpr std::string_view kUnknownException =
    "an exception that isn't derived from std::exception; throw one that is, which says more";

/// Calls the function. If it throws, a place such as a path is put in front of the message. An
/// Error keeps its code; any other exception becomes loop_failed. The new exception nests the old
/// one.
template <typename Function, typename Place>
auto with_place(Function&& function, Place&& place) {
  try {
    return function();
  } catch (const Error& error) {
    std::throw_with_nested(Error(error.code(), fmt::format("{}: {}", place(), error.what())));
  } catch (const std::exception& error) {
    std::throw_with_nested(Error(Errc::loop_failed, fmt::format("{}: {}", place(), error.what())));
  } catch (...) {
    std::throw_with_nested(
        Error(Errc::loop_failed, fmt::format("{}: {}", place(), kUnknownException)));
  }
}

/// Calls the function. If it throws, the exception becomes an ItemError that nests it. `source` has
/// a name().
template <typename Source, typename Function>
auto read_named(const Source& source, const Item& item, Function function) {
  try {
    return function();
  } catch (const ItemError&) {
    throw;
  } catch (const Error& error) {
    std::throw_with_nested(ItemError(error.code(), source.name(), item, error.what()));
  } catch (const std::exception& error) {
    std::throw_with_nested(ItemError(Errc::loop_failed, source.name(), item, error.what()));
  } catch (...) {
    std::throw_with_nested(ItemError(Errc::loop_failed, source.name(), item, kUnknownException));
  }
}

}  // namespace weft
