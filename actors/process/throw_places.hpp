#pragma once
/// Records the places of throws. When an exception is caught, the stack is already unwound, so two
/// functions of the C++ runtime are replaced. Every `throw` calls `__cxa_throw`: the replacement
/// records the addresses of the calls and then calls the original. `__cxa_allocate_exception`
/// forgets the earlier exception at its address.

#include <exception>
#include <string>

namespace weft {

/// While an object of this class lives, this process records the calls of the last throws of all
/// its threads. Each throw then takes a few microseconds longer. Nothing else takes longer. While
/// no object lives, a throw only loads one flag.
///
/// Nothing is recorded if a sanitizer replaces the same functions. In a plug-in whose program
/// loaded the C++ library first, only throws of weft itself are recorded.
class ThrowsKept {
 public:
  ThrowsKept() noexcept;
  ~ThrowsKept();
  ThrowsKept(const ThrowsKept&) = delete;
  ThrowsKept& operator=(const ThrowsKept&) = delete;
};

/// Returns the user's calls at the first throw: "load_batch(int) train.cpp:9 < train train.cpp:12".
/// A later throw of the same exception, even on another thread, doesn't change them. For an
/// exception that holds another one (std::throw_with_nested), returns the place of the innermost.
/// Returns "" if none of the user's calls is known.
std::string thrown_at(std::exception_ptr thrown);

}  // namespace weft
