#include "actors/process/failure.hpp"

#include <cxxabi.h>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "data/files/utf8.hpp"

namespace weft {
namespace {

Thrown other(const std::string& what) {
  return {Errc::loop_failed, what + ", which isn't a std::exception"};
}

}  // namespace

Thrown describe(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(std::move(thrown));
  } catch (const Error& e) {
    return {e.code(), as_utf8(e.what())};
  } catch (const std::exception& e) {
    return {Errc::loop_failed, fmt::format("{}: {}", name_of(typeid(e)), as_utf8(e.what()))};
  } catch (const char* text) {
    return other(fmt::format("the text \"{}\"", as_utf8(text)));
  } catch (const std::string& text) {
    return other(fmt::format("the text \"{}\"", as_utf8(text)));
  } catch (int number) {
    return other(fmt::format("the int {}", number));
  } catch (...) {
    return other("an exception of type " + name_of(*abi::__cxa_current_exception_type()));
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
  constexpr std::string_view kNested = "std::_Nested_exception<";  // the class that
                                                                   // throw_with_nested() throws
  if (name.starts_with(kNested)) {
    name = name.substr(kNested.size(), name.rfind('>') - kNested.size());
  }
  constexpr std::string_view kNameless = "(anonymous namespace)::";
  if (const auto at = name.find(kNameless); at != name.npos) name.erase(at, kNameless.size());
  return name;
}

}  // namespace weft
