#pragma once
/// Failure: the error that ended a loop or a device's work, as it is sent to the trainer.

#include <exception>
#include <string>
#include <typeinfo>

#include <weft/error.hpp>

namespace weft {

struct Thrown {
  Errc code = Errc::loop_failed;
  std::string message;
};
/// Converts any exception: an Error keeps its code; for others the message has the type's name, and
/// the value of a text or a number. The message is UTF-8.
Thrown describe(std::exception_ptr thrown);

/// "std::runtime_error: boom, thrown at load train.cpp:9"; `place`: thrown_at(), may be empty.
std::string with_throw(const std::string& message, const std::string& place);

/// "app::Plotter", without the namespace that a file has for itself.
std::string name_of(const std::type_info& type);

}  // namespace weft
