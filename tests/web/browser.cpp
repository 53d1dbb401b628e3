#include "tests/web/browser.hpp"

#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

namespace weft::testing {
namespace {

using Json = nlohmann::json;

constexpr int kTimeout_s = 120;

std::string decode_base64(const std::string& text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const auto digit = kDigits.find(c);
    if (digit == kDigits.npos) continue;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if ((count += 6) < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  return bytes;
}

Json capabilities(const std::string& profile) {
  const Json arguments{"--headless",
                       "--no-sandbox",
                       "--disable-gpu",
                       "--disable-quic",
                       "--disable-dev-shm-usage",
                       "--no-first-run",
                       "--disable-background-networking",
                       "--disable-component-update",
                       "--disable-sync",
                       "--hide-scrollbars",
                       "--user-data-dir=" + profile};
  return {{"capabilities",
           {{"alwaysMatch",
             {{"goog:loggingPrefs", {{"browser", "ALL"}}},
              {"goog:chromeOptions", {{"args", arguments}}}}}}}};
}

}  // namespace

std::optional<std::string> Browser::find_driver() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = folder + "/chromedriver";
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

Browser::Browser(const std::string& driver) : driver_({driver, "--port=0"}) {
  const std::string line = driver_.wait_for_line("started successfully on port ");
  const auto place = line.rfind(' ');
  if (place == line.npos) throw std::runtime_error("chromedriver: " + driver_.output());
  client_.emplace("127.0.0.1", std::stoi(line.substr(place + 1)));
  client_->set_read_timeout(kTimeout_s);
  const Json session = post("/session", capabilities(profile_.path()));
  session_ = "/session/" + session.at("sessionId").get<std::string>();
  post(session_ + "/window/rect", {{"width", 1280}, {"height", 720}});
  const int missing = 720 - run("return innerHeight").get<int>();
  post(session_ + "/window/rect", {{"width", 1280}, {"height", 720 + missing}});
}

Browser::~Browser() {
  // Without this request Chromium would continue to run when its driver is killed.
  client_->Delete(session_.c_str());
}

Json Browser::value_of(const httplib::Result& answer) {
  if (!answer) throw std::runtime_error("chromedriver doesn't answer");
  Json value = Json::parse(answer->body).at("value");
  if (answer->status != 200) throw std::runtime_error(value.at("message").dump());
  return value;
}

Json Browser::post(const std::string& path, const Json& body) {
  try {
    return value_of(client_->Post(path.c_str(), body.dump(), "application/json"));
  } catch (const std::exception& e) {
    throw std::runtime_error(fmt::format("{} {}: {}", path, body.dump(), e.what()));
  }
}

void Browser::open(const std::string& url) { post(session_ + "/url", {{"url", url}}); }

Json Browser::run(const std::string& script) {
  return post(session_ + "/execute/sync", {{"script", script}, {"args", Json::array()}});
}

void Browser::click(const std::string& selector) {
  const Json element =
      post(session_ + "/element", {{"using", "css selector"}, {"value", selector}});
  const auto id = element.begin().value().get<std::string>();
  post(fmt::format("{}/element/{}/click", session_, id), Json::object());
}

void Browser::press(const std::string& keys) {
  // The keys go to the element that has the focus at the time, as with a keyboard. An element that
  // a script found earlier may be hidden, or drawn again, by then.
  Json actions = Json::array();
  for (std::size_t i = 0; i < keys.size();) {
    const std::size_t begin = i++;
    while (i < keys.size() && (keys[i] & 0xC0) == 0x80) ++i;
    const std::string key = keys.substr(begin, i - begin);
    for (const char* type : {"keyDown", "keyUp"}) {
      actions.push_back({{"type", type}, {"value", key}});
    }
  }
  const Json keyboard{{"type", "key"}, {"id", "keyboard"}, {"actions", actions}};
  post(session_ + "/actions", {{"actions", Json::array({keyboard})}});
}

void Browser::resize(int width, int height) {
  post(session_ + "/goog/cdp/execute",
       {{"cmd", "Emulation.setDeviceMetricsOverride"},
        {"params",
         {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", false}}}});
}

void Browser::prefer_colours(const std::string& scheme) {
  const Json feature{{"name", "prefers-color-scheme"}, {"value", scheme}};
  post(session_ + "/goog/cdp/execute",
       {{"cmd", "Emulation.setEmulatedMedia"}, {"params", {{"features", Json::array({feature})}}}});
}

std::string Browser::screenshot() {
  return decode_base64(
      value_of(client_->Get((session_ + "/screenshot").c_str())).get<std::string>());
}

Json Browser::complaints() { return post(session_ + "/se/log", {{"type", "browser"}}); }

}  // namespace weft::testing
