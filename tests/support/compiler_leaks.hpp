#pragma once
/// Says whether a leak caused by the compiler would fail the test.

namespace weft::testing {

/// clang leaks the result of a function in which a destructor throws, such as that of a call in an
/// eager job whose op fails.
constexpr bool compiler_leaks_count() {
#ifdef __clang__
#if __has_feature(address_sanitizer)
  return true;
#endif
#endif
  return false;
}

}  // namespace weft::testing
