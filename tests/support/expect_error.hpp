#pragma once
/// Expects that code throws an error with a given code and given words in its message.

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include <weft/tensor/error.hpp>

namespace weft::testing {

/// Returns the message of the weft::Error that `body` throws. Fails the test unless the error has
/// this code, and its message has all these words.
inline std::string expect_error(Errc code, std::initializer_list<std::string_view> words,
                                const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
    for (const std::string_view word : words) {
      EXPECT_NE(std::string_view(error.what()).find(word), std::string_view::npos)
          << "'" << word << "' isn't in: " << error.what();
    }
    return error.what();
  }
  ADD_FAILURE() << "expected an error " << to_string(code);
  return {};
}

}  // namespace weft::testing
