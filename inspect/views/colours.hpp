#pragma once
/// Terminal colours that show the state of an actor or a job. Each is the ANSI code that turns it
/// on.

#include <string_view>

namespace weft {

inline constexpr std::string_view kRed =
    "\x1b[31m";  ///< it can't continue by itself, or has failed
inline constexpr std::string_view kYellow =
    "\x1b[33m";  ///< it waits for others, or is in a debugger
inline constexpr std::string_view kGreen = "\x1b[32m";  ///< it works
inline constexpr std::string_view kBold = "\x1b[1m";
inline constexpr std::string_view kReversed = "\x1b[7m";
inline constexpr std::string_view kPlain = "\x1b[0m";  ///< turns colours off

/// Returns the colour for the state of an actor or a job; "" for a state of rest.
std::string_view colour_of(std::string_view state) noexcept;

/// Returns whether stdout is a terminal and NO_COLOR isn't set.
bool wants_colours();

}  // namespace weft
