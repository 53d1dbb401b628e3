#pragma once
/// Document: makes the HTML document of `weft inspect serve`.

#include <string>
#include <string_view>

namespace weft {

/// The page's files, from inspect/page/web/. The scripts are concatenated.
extern const std::string_view kPageHtml;
extern const std::string_view kPageCss;
extern const std::string_view kPageJs;

/// Returns the page as a server delivers it: its style and script are at /page.css and /page.js,
/// and it fetches its data by requests.
std::string served_page();

/// The data of a page that is a single file, as JSON from page_state(), timeline_json() and
/// curves_json(). `stacks` has the result of stack_json() for each actor's name.
struct PageData {
  double at_s = 0;       ///< CLOCK_BOOTTIME of the data, in seconds
  double at_unix_s = 0;  ///< time at which the file was made: seconds since 1970
  std::string state{};
  std::string timeline{};
  std::string curves{};
  std::string stacks = "{}";
};
std::string exported_page(const PageData& data);

}  // namespace weft
