#pragma once
/// The places of throws. A catch finds the stack unwound, so `__cxa_throw`, which every `throw`
/// calls, is replaced: it keeps the addresses of the calls and continues as before.
/// `__cxa_allocate_exception`, which is replaced too, forgets the exception at its address before.

#include <exception>
#include <string>

namespace weft {

/// While one lives, this process keeps the calls of its last throws, of all threads. A throw takes
/// a few microseconds longer then; all else takes no time. Without any, a throw loads one flag.
///
/// It sees nothing where a sanitizer replaces the same functions. In a plug-in whose program loaded
/// the C++ library first, it sees only the throws of weft itself.
class ThrowsKept {
 public:
  ThrowsKept() noexcept;
  ~ThrowsKept();
  ThrowsKept(const ThrowsKept&) = delete;
  ThrowsKept& operator=(const ThrowsKept&) = delete;
};

/// "load_batch(int) train.cpp:9 < train train.cpp:12": the user's calls at the first throw, also
/// where it was thrown again, on another thread too. An exception that holds another one
/// (std::throw_with_nested) has the place of the innermost. "" where none of the user's calls is
/// known.
std::string thrown_at(std::exception_ptr thrown);

}  // namespace weft
