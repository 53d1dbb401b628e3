#pragma once
/// Says whether leaks that the compiler causes make a test fail.

namespace weft::testing {

/// Returns true with clang and AddressSanitizer. If a destructor throws at the end of a function,
/// as with an op that fails in an eager job, code from clang leaks the function's result.
constexpr bool compiler_leaks_count() {
#ifdef __clang__
#if __has_feature(address_sanitizer)
  return true;
#endif
#endif
  return false;
}

}  // namespace weft::testing
