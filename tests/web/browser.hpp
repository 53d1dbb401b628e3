#pragma once
/// Controls a headless Chromium with a window of 1280 x 720, by chromedriver and WebDriver (W3C).

#include <optional>
#include <string>

#include <httplib.h>
#include <nlohmann/json.hpp>

#include "tests/support/app_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::testing {

class Browser {
 public:
  /// Returns the path of chromedriver; std::nullopt if it isn't installed.
  static std::optional<std::string> find_driver();

  /// Starts a session. Throws WebDriver's error if that fails.
  explicit Browser(const std::string& driver);
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  void open(const std::string& url);
  /// Runs a script as the body of a function in the page, and returns its result.
  nlohmann::json run(const std::string& script);
  void click(const std::string& selector);
  /// Presses keys, which go to the element that has the focus.
  void press(const std::string& keys);
  /// Sets the size of the window's content in pixels.
  void resize(int width, int height);
  /// Makes the page see a system with "dark" or "light" colors.
  void prefer_colours(const std::string& scheme);
  /// Returns the window's content as a PNG.
  std::string screenshot();
  /// Returns the page's errors since the last call: refused requests, and errors of scripts.
  nlohmann::json complaints();

 private:
  nlohmann::json post(const std::string& path, const nlohmann::json& body);
  static nlohmann::json value_of(const httplib::Result& answer);

  TemporaryFolder profile_;
  AppProcess driver_;
  std::optional<httplib::Client> client_;
  std::string session_;  // the path of the session
};

}  // namespace weft::testing
