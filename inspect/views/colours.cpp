#include "inspect/views/colours.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace weft {
namespace {

constexpr std::array<std::string_view, 8> kBad{"stopped", "gone", "lost", "host lost",
                                               "failed",  "dead", "hung", "frozen"};
constexpr std::array<std::string_view, 5> kWaits{"waiting", "held", "admission", "lease",
                                                 "commands"};
constexpr std::array<std::string_view, 8> kRests{"absent", "idle",      "ended",   "succeeded",
                                                 "kept",   "cancelled", "unknown", ""};

}  // namespace

std::string_view colour_of(std::string_view state) noexcept {
  const auto is_one_of = [&](const auto& states) {
    return std::ranges::find(states, state) != states.end();
  };
  if (is_one_of(kBad)) return kRed;
  if (is_one_of(kWaits)) return kYellow;
  return is_one_of(kRests) ? "" : kGreen;
}

bool wants_colours() {
  const char* no_colour = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) != 0 && (no_colour == nullptr || *no_colour == '\0');
}

}  // namespace weft
