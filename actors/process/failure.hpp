#pragma once
/// Failure: the error that ended a loop or a device's work, in the form in which it is sent to the
/// trainer.

#include <exception>
#include <string>
#include <typeinfo>

#include <weft/tensor/error.hpp>

namespace weft {

struct Thrown {
  Errc code = Errc::loop_failed;
  std::string message;
};
/// Converts any exception. An Error keeps its code. For other exceptions, the message has the name
/// of the type, and also the value if a text or a number was thrown. The message is UTF-8.
Thrown describe(std::exception_ptr thrown);

/// Returns a text such as "std::runtime_error: boom, thrown at load train.cpp:9". `place` is a
/// result of thrown_at() and may be empty.
std::string with_throw(const std::string& message, const std::string& place);

/// Returns the type's name, such as "app::Plotter", without an anonymous namespace.
std::string name_of(const std::type_info& type);

}  // namespace weft
