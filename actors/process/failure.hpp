#pragma once
/// What ended a loop or a device's work, as the trainer is told it.

#include <exception>
#include <string>

#include <weft/error.hpp>

namespace weft {

struct Thrown {
  Errc code = Errc::loop_failed;
  std::string message;
};
/// Of anything that can be thrown: an Error keeps its code, of another exception the type is named.
/// The message is UTF-8.
Thrown describe(std::exception_ptr thrown);

}  // namespace weft
