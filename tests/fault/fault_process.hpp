#pragma once
/// Runs fault_app and watches it for a test.

#include <gtest/gtest.h>

#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/app_process.hpp"

namespace weft::testing {

/// Runs fault_app with these arguments.
class FaultApp : public AppProcess {
 public:
  explicit FaultApp(const std::vector<std::string>& arguments,
                    const std::vector<std::string>& variables = {})
      : AppProcess(words(arguments), variables) {}

  /// Returns the job's secret, which is there once a worker has reached its loop.
  std::string token() const {
    std::ifstream file(json_path() + ".token");
    std::string token;
    file >> token;
    return token;
  }

 private:
  static std::vector<std::string> words(const std::vector<std::string>& arguments) {
    std::vector<std::string> all{FAULT_APP, "--json", "{json}"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }
};

/// Runs the program to its end. Expects a failure, returns it, and expects that nothing is left
/// behind.
inline nlohmann::json failure_of(FaultApp& app) {
  const std::string job = app.job();
  EXPECT_EQ(app.wait(), 1) << app.output();
  expect_nothing_left(job);
  nlohmann::json result = app.result();
  EXPECT_FALSE(result.at("ok")) << result;
  return result;
}

inline void expect_words(const nlohmann::json& result,
                         std::initializer_list<std::string_view> words) {
  const auto message = result.at("message").get<std::string>();
  for (const auto word : words) {
    EXPECT_NE(message.find(word), std::string::npos) << "'" << word << "' isn't in: " << message;
  }
}

}  // namespace weft::testing
