#include "tools/weft/launch/lines.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr std::string_view kWorker = "[worker ";
/// The maximum length of a line. A longer line is shown in pieces.
constexpr std::size_t kLineBytesMax = 65536;
/// The colors of tags. Red is reserved for errors, black and white for the terminal.
constexpr int kColours[] = {36, 33, 35, 32, 34, 96};

struct Tagged {
  int worker = -1;
  std::string_view text;  ///< without the tag
};

Tagged split(std::string_view line) {
  const Tagged own{.text = line};
  if (!line.starts_with(kWorker)) return own;
  const std::string_view rest = line.substr(kWorker.size());
  Tagged tagged;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), tagged.worker);
  const std::string_view after = rest.substr(static_cast<std::size_t>(end - rest.data()));
  if (error != std::errc{} || tagged.worker < 0 || !after.starts_with("] ")) return own;
  tagged.text = after.substr(2);
  return tagged;
}

}  // namespace

/// Returns the text to show for `line`, which has no newline; "" if its worker isn't selected.
std::string Lines::show(std::string_view line) const {
  const Tagged tagged = split(line);
  const auto& only = options_.only;
  if (tagged.worker >= 0 && !only.empty() && std::ranges::find(only, tagged.worker) == only.end()) {
    return {};
  }
  std::string text = options_.timestamps ? now_() : "";
  std::string tag;
  if (tagged.worker >= 0) tag = fmt::format("[worker {}]", tagged.worker);
  if (tagged.worker < 0 && options_.tags) tag = "[program]";
  if (options_.colours && tagged.worker >= 0) {
    const auto colour = static_cast<std::size_t>(tagged.worker) % std::size(kColours);
    tag = fmt::format("\x1b[{}m{}\x1b[0m", kColours[colour], tag);
  }
  if (!tag.empty()) text += tag + ' ';
  text += tagged.text;
  return text + '\n';
}

std::string Lines::take(std::string_view text) {
  std::string shown;
  const auto end_line = [&] {
    if (keep_) {
      const Tagged tagged = split(line_);
      keep_(tagged.worker, tagged.text);
    }
    shown += shown_ == 0 ? show(line_) : line_.substr(shown_) + '\n';
    line_.clear();
    shown_ = 0;
  };
  for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
    line_ += text.substr(0, end);
    end_line();
  }
  line_ += text;
  if (line_.size() > kLineBytesMax) {
    end_line();
  } else if (!options_.whole) {
    shown += std::string_view(line_).substr(shown_);
    shown_ = line_.size();
  }
  return shown;
}

std::string Lines::finish() {
  if (line_.empty()) return {};
  std::string shown = shown_ == 0 ? show(line_) : "";
  if (!shown.empty()) shown.pop_back();
  if (keep_) {
    const Tagged tagged = split(line_);
    keep_(tagged.worker, tagged.text);
  }
  line_.clear();
  shown_ = 0;
  return shown;
}

}  // namespace weft
