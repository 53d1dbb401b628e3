#pragma once
/// The document of `weft inspect serve`.

#include <string>
#include <string_view>

namespace weft {

/// Its files, which stand in inspect/page/web/; scripts one after the other.
extern const std::string_view kPageHtml;
extern const std::string_view kPageCss;
extern const std::string_view kPageJs;

/// As a server gives it: style and script are /page.css and /page.js, data comes by requests.
std::string served_page();

/// One file that needs nothing else. Its parts are JSON, see page_state(), timeline_json() and
/// curves_json(); `at_s` is CLOCK_BOOTTIME.
struct PageData {
  double at_s = 0;
  std::string state{};
  std::string timeline{};
  std::string curves{};
};
std::string exported_page(const PageData& data);

}  // namespace weft
