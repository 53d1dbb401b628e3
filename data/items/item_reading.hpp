#pragma once
/// Does the checks of Dataset::read() and Stream::next(), and adds names to their errors.

#include <exception>
#include <string_view>
#include <vector>

#include <weft/data/dataset.hpp>
#include <weft/tensor/error.hpp>

namespace weft {

bool fits(const std::vector<Field>& fields, ItemMemory out);
[[noreturn]] void refuse_memory(std::string_view name, const std::vector<Field>& fields,
                                ItemMemory out);
/// Throws invalid_argument unless the memory fits the fields of `source`, which is a Dataset or a
/// Stream.
template <typename Source>
void check_memory(const Source& source, ItemMemory out) {
  if (!fits(source.fields(), out)) refuse_memory(source.name(), source.fields(), out);
}

/// An Error whose message already has the name of the dataset and the index of the item. Enclosing
/// datasets rethrow such an error unchanged.
class ItemError : public Error {
 public:
  ItemError(Errc code, std::string_view name, const Item& item, std::string_view what)
      : Error(code,
              fmt::format("{}: item {} of epoch {}: {}", name, item.index, item.epoch, what)) {}
};

/// The message for an exception that has no text.
inline constexpr std::string_view kUnknownException =
    "an exception that isn't derived from std::exception; throw one that is, which says more";

/// Calls the function. If it throws, throws an Error with place(), such as a path, in front of the
/// message. The new error nests the old exception. It has the code of the old one if that is an
/// Error, and loop_failed otherwise.
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

/// Calls the function. If it throws, throws an ItemError with source.name() that nests the
/// exception.
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
