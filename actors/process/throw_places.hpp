#pragma once
/// Records the places of throws. When an exception is caught, its stack is already unwound.
/// Therefore two functions of the C++ runtime are replaced. Every `throw` calls `__cxa_throw`: its
/// replacement records the addresses of the calls and then calls the original. The replacement of
/// `__cxa_allocate_exception` forgets an earlier exception at the same address.

#include <exception>
#include <string>

namespace weft {

/// While an object of this class lives, this process records the calls of the last throws of all
/// its threads. This makes each throw a few microseconds longer, and nothing else. While no object
/// lives, a throw only reads one flag.
///
/// Nothing is recorded if a sanitizer replaces the same functions. If weft is in a plug-in, and
/// the program had loaded the C++ library before, only throws of weft itself are recorded.
class ThrowsKept {
 public:
  ThrowsKept() noexcept;
  ~ThrowsKept();
  ThrowsKept(const ThrowsKept&) = delete;
  ThrowsKept& operator=(const ThrowsKept&) = delete;
};

/// Returns the user's calls at the first throw: "load_batch(int) train.cpp:9 < train train.cpp:12".
/// A later throw of the same exception, even on another thread, doesn't change them. If exceptions
/// are nested (std::throw_with_nested), returns the calls of the innermost one. Returns "" if none
/// of the user's calls is known.
std::string thrown_at(std::exception_ptr thrown);

}  // namespace weft
