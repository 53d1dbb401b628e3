#include "actors/process/failure.hpp"

#include <cxxabi.h>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "transport/memory/utf8.hpp"

namespace weft {

Thrown describe(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(std::move(thrown));
  } catch (const Error& e) {
    return {e.code(), as_utf8(e.what())};
  } catch (const std::exception& e) {
    return {Errc::loop_failed, fmt::format("{}: {}", name_of(typeid(e)), as_utf8(e.what()))};
  } catch (const char* text) {
    return {Errc::loop_failed, fmt::format("const char*: {}", as_utf8(text))};
  } catch (const std::string& text) {
    return {Errc::loop_failed, fmt::format("std::string: {}", as_utf8(text))};
  } catch (int number) {
    return {Errc::loop_failed, fmt::format("int: {}", number)};
  } catch (...) {
    return {Errc::loop_failed, fmt::format("an exception of type {}, which is no std::exception",
                                           name_of(*abi::__cxa_current_exception_type()))};
  }
}

std::string with_throw(const std::string& message, const std::string& place) {
  return place.empty() ? message : fmt::format("{}, thrown at {}", message, place);
}

std::string name_of(const std::type_info& type) {
  int status = 0;
  char* const text = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string name = status == 0 ? text : type.name();
  std::free(text);
  constexpr std::string_view kNameless = "(anonymous namespace)::";
  if (const auto at = name.find(kNameless); at != name.npos) name.erase(at, kNameless.size());
  return name;
}

}  // namespace weft
