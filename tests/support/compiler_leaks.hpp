#pragma once
/// Whether a leak of the compiler's own would fail the test.

namespace weft::testing {

/// clang leaks the result of a function in which a destructor throws, as that of a call in an eager
/// job does where its op fails.
constexpr bool compiler_leaks_count() {
#ifdef __clang__
#if __has_feature(address_sanitizer)
  return true;
#endif
#endif
  return false;
}

}  // namespace weft::testing
