#pragma once
/// A headless Chromium, driven by chromedriver over WebDriver (W3C): one window of 1280 x 720.

#include <optional>
#include <string>

#include <httplib.h>
#include <nlohmann/json.hpp>

#include "tests/support/app_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::testing {

class Browser {
 public:
  /// chromedriver's path; absent where it isn't installed.
  static std::optional<std::string> find_driver();

  /// Throws what WebDriver answers.
  explicit Browser(const std::string& driver);
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  void open(const std::string& url);
  /// What the body of a function returns.
  nlohmann::json run(const std::string& script);
  void click(const std::string& selector);
  /// To the element that has the focus.
  void press(const std::string& keys);
  /// The inside of the window, in pixels.
  void resize(int width, int height);
  /// As if the system had dark or light colours: "dark", "light".
  void prefer_colours(const std::string& scheme);
  /// A PNG.
  std::string screenshot();
  /// What the page has complained of since the last call: refused requests, errors of scripts.
  nlohmann::json complaints();

 private:
  nlohmann::json post(const std::string& path, const nlohmann::json& body);
  static nlohmann::json value_of(const httplib::Result& answer);

  TemporaryFolder profile_;
  AppProcess driver_;
  std::optional<httplib::Client> client_;
  std::string session_;  // the path
};

}  // namespace weft::testing
