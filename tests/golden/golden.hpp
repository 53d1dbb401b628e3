#pragma once
/// Golden files: what was written once and has to come out the same. GOLDEN_UPDATE=1 rewrites them.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace weft {

/// The content of tests/golden/`name`; fails the test, and returns nothing, where there is none.
inline std::string read_golden(const std::string& name) {
  std::ifstream file(std::filesystem::path(WEFT_GOLDEN_DIR) / name, std::ios::binary);
  EXPECT_TRUE(file) << "no tests/golden/" << name << "; GOLDEN_UPDATE=1 writes it";
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Fails the test unless `actual` is the content of tests/golden/`name`.
inline void expect_golden(const std::string& name, std::string_view actual) {
  if (std::getenv("GOLDEN_UPDATE") != nullptr) {
    std::ofstream(std::filesystem::path(WEFT_GOLDEN_DIR) / name, std::ios::binary) << actual;
  }
  const std::string golden = read_golden(name);
  if (golden.find('\0') == std::string::npos) {
    EXPECT_EQ(actual, golden) << "differs from tests/golden/" << name;
  } else {
    EXPECT_TRUE(actual == golden) << "differs from tests/golden/" << name;
  }
}

}  // namespace weft
