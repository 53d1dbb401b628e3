#pragma once
/// Compares texts with golden files in tests/golden/; GOLDEN_UPDATE=1 rewrites the files.
/// WEFT_TEST_DIR is the path of tests/.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

namespace weft::testing {

inline std::filesystem::path golden_path(std::string_view name) {
  return std::filesystem::path(WEFT_TEST_DIR) / "golden" / name;
}

inline std::string read_golden(std::string_view name) {
  std::ifstream file(golden_path(name), std::ios::binary);
  EXPECT_TRUE(file) << golden_path(name) << " can't be read; GOLDEN_UPDATE=1 writes it";
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Fails the test if the text differs from the golden file, and shows the first difference.
inline void expect_golden(std::string_view name, std::string_view actual) {
  if (const char* update = std::getenv("GOLDEN_UPDATE");
      update && std::string_view(update) == "1") {
    std::filesystem::create_directories(golden_path(name).parent_path());
    std::ofstream file(golden_path(name), std::ios::binary);
    file.write(actual.data(), static_cast<std::streamsize>(actual.size()));
    ASSERT_TRUE(file.flush()) << golden_path(name);
    return;
  }
  const std::string expected = read_golden(name);
  if (actual == expected) return;
  std::size_t i = 0;
  while (i < actual.size() && i < expected.size() && actual[i] == expected[i]) ++i;
  ADD_FAILURE() << golden_path(name) << " differs from byte " << i << " on (" << expected.size()
                << " bytes expected, " << actual.size()
                << " found); if that is meant, GOLDEN_UPDATE=1 rewrites it";
}

inline void expect_golden(std::string_view name, std::span<const std::byte> actual) {
  expect_golden(name, {reinterpret_cast<const char*>(actual.data()), actual.size()});
}

}  // namespace weft::testing
