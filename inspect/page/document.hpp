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

/// One file that needs nothing else. Its parts are JSON, see page_state(), timeline_json(),
/// curves_json() and, by the actors' names, stack_json().
struct PageData {
  double at_s = 0;       ///< CLOCK_BOOTTIME
  double at_unix_s = 0;  ///< when the file was made: seconds since 1970
  std::string state{};
  std::string timeline{};
  std::string curves{};
  std::string stacks = "{}";
};
std::string exported_page(const PageData& data);

}  // namespace weft
