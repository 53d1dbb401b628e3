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
  /// Returns chromedriver's path; nullopt if it isn't installed.
  static std::optional<std::string> find_driver();

  /// Throws WebDriver's error if the session can't begin.
  explicit Browser(const std::string& driver);
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  void open(const std::string& url);
  /// Runs the body of a function, and returns its result.
  nlohmann::json run(const std::string& script);
  void click(const std::string& selector);
  /// Presses keys in the element that has the focus.
  void press(const std::string& keys);
  /// Sets the size of the inside of the window, in pixels.
  void resize(int width, int height);
  /// Acts as if the system had dark or light colours: "dark", "light".
  void prefer_colours(const std::string& scheme);
  /// Returns a PNG.
  std::string screenshot();
  /// Returns the page's complaints since the last call: refused requests, errors of scripts.
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
