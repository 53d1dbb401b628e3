#include "actors/process/failure.hpp"

#include <cxxabi.h>
#include <cstdlib>
#include <typeinfo>

#include <fmt/format.h>

#include "transport/memory/utf8.hpp"

namespace weft {

Thrown describe(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(std::move(thrown));
  } catch (const Error& e) {
    return {e.code(), as_utf8(e.what())};
  } catch (const std::exception& e) {
    int status = 0;
    char* name = abi::__cxa_demangle(typeid(e).name(), nullptr, nullptr, &status);
    Thrown failure{Errc::loop_failed,
                   fmt::format("{}: {}", status == 0 ? name : "exception", as_utf8(e.what()))};
    std::free(name);
    return failure;
  } catch (...) {
    return {Errc::loop_failed, "an exception that is no std::exception"};
  }
}

}  // namespace weft
