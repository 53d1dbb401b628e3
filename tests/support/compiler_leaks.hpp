#pragma once
/// Says whether a test fails because of a leak that the compiler causes.

namespace weft::testing {

/// Returns true with clang and AddressSanitizer. clang leaks the result of a function in which a
/// destructor throws, such as that of an op that fails in an eager job.
constexpr bool compiler_leaks_count() {
#ifdef __clang__
#if __has_feature(address_sanitizer)
  return true;
#endif
#endif
  return false;
}

}  // namespace weft::testing
