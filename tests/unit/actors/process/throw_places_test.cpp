#include "actors/process/throw_places.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <weft/tensor/error.hpp>

#include "inspect/process/stack.hpp"

/// These functions aren't in namespace weft, because calls in weft don't count as the user's.
namespace throwers {

int line = 0;

[[noreturn, gnu::noinline]] void throw_error() {
  line = __LINE__ + 1;
  throw std::runtime_error("boom");
}
[[noreturn, gnu::noinline]] void throw_number() {
  line = __LINE__ + 1;
  throw 42;
}
[[gnu::noinline]] void make_a_mistake() {
  line = __LINE__ + 1;
  weft::fail(weft::Errc::invalid_argument, "no such thing");
}
[[gnu::noinline]] void ask_the_library() {
  line = __LINE__ + 1;
  (void)std::string("abc").at(7);
}
[[gnu::noinline]] void throw_again() {
  try {
    throw_error();
  } catch (const std::exception&) {
    const int first = line;
    try {
      throw_number();
    } catch (int) {
    }
    line = first;
    throw;
  }
}
[[gnu::noinline]] void wrap() {
  try {
    throw_error();
  } catch (const std::exception& e) {
    std::throw_with_nested(std::logic_error(e.what()));
  }
}
[[gnu::noinline]] void throw_in_thread() { std::async(std::launch::async, throw_error).get(); }

}  // namespace throwers

namespace weft::throw_places_test {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kIsReplaced = true;
#elif defined(__has_feature)
constexpr bool kIsReplaced = __has_feature(address_sanitizer);
#else
constexpr bool kIsReplaced = false;
#endif

std::string place_of(const std::function<void()>& function) {
  try {
    function();
  } catch (...) {
    return thrown_at(std::current_exception());
  }
  return "nothing was thrown";
}

class ThrowPlaces : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kIsReplaced) GTEST_SKIP() << "AddressSanitizer has a __cxa_throw of its own";
    const auto here = reinterpret_cast<std::uintptr_t>(&throwers::throw_error) + 1;
    if (name_calls({{here}}).empty()) GTEST_SKIP() << "there is no libdw";
  }
  /// Expects the function and the line of a throw. With clang expects only the function, because
  /// libdw finds no lines in code that clang 16 compiled.
  static void expect_at(const std::string& place, const std::string& function) {
    EXPECT_EQ(place.find("throwers::" + function), 0U) << place;
#ifndef __clang__
    const std::string line = fmt::format("throw_places_test.cpp:{}", throwers::line);
    EXPECT_NE(place.find(line), std::string::npos) << line << " isn't in " << place;
#endif
  }

  const ThrowsKept kept_;
};

TEST_F(ThrowPlaces, NamesTheLineThatThrew) {
  expect_at(place_of(throwers::throw_error), "throw_error");
}
TEST_F(ThrowPlaces, NamesTheLineOfWhatIsNoStdException) {
  expect_at(place_of(throwers::throw_number), "throw_number");
}
TEST_F(ThrowPlaces, NamesTheFirstThrowOfWhatIsThrownAgain) {
  expect_at(place_of(throwers::throw_again), "throw_error");
}
TEST_F(ThrowPlaces, NamesTheThrowOnAnotherThread) {
  expect_at(place_of(throwers::throw_in_thread), "throw_error");
}
TEST_F(ThrowPlaces, NamesTheInnermostOfNestedExceptions) {
  expect_at(place_of(throwers::wrap), "throw_error");
}
TEST_F(ThrowPlaces, NamesTheUsersCallOfWhatWeftThrew) {
  expect_at(place_of(throwers::make_a_mistake), "make_a_mistake");
}
TEST_F(ThrowPlaces, NamesTheUsersCallOfWhatTheCxxLibraryThrew) {
  expect_at(place_of(throwers::ask_the_library), "ask_the_library");
}

TEST(ThrowPlace, IsUnknownWhereNobodyKeepsThrows) {
  EXPECT_EQ(place_of(throwers::throw_error), "");
}

/// The exception reuses memory of earlier exceptions that were thrown. Their places must not be
/// taken for its place.
TEST(ThrowPlace, IsUnknownOfAnExceptionThatWasNeverThrown) {
  const ThrowsKept kept;
  for (int i = 0; i < 100; ++i) {
    EXPECT_THROW(throwers::throw_number(), int);
    EXPECT_EQ(thrown_at(std::make_exception_ptr(1)), "");
  }
}

}  // namespace
}  // namespace weft::throw_places_test
