#include "inspect/page/document.hpp"

#include <fmt/format.h>

namespace weft {
namespace {

constexpr std::string_view kStyleMark = "<!--style-->";
constexpr std::string_view kScriptMark = "<!--script-->";

/// Replaces `mark`, which kPageHtml contains once, by `text`.
void replace(std::string& page, std::string_view mark, std::string_view text) {
  page.replace(page.find(mark), mark.size(), text);
}

/// Makes JSON safe within a script element. In JSON, "<" occurs only within strings, where \u003c
/// means the same.
std::string in_script(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

std::string served_page() {
  std::string page(kPageHtml);
  replace(page, kStyleMark, R"(<link rel="stylesheet" href="/page.css">)");
  replace(page, kScriptMark, R"(<script src="/page.js"></script>)");
  return page;
}

std::string exported_page(const PageData& data) {
  std::string page(kPageHtml);
  replace(
      page, kStyleMark,
      fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                  "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n<style>\n{}</style>",
                  kPageCss));
  const std::string json = fmt::format(
      R"({{"at": {}, "made_unix_s": {:.0f}, "state": {}, "timeline": {}, "curves": {}, )"
      R"("stacks": {}}})",
      data.at_s, data.at_unix_s, data.state, data.timeline, data.curves, data.stacks);
  replace(page, kScriptMark,
          fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n"
                      "<script>\n{}</script>",
                      in_script(json), kPageJs));
  return page;
}

}  // namespace weft
