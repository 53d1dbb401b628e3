#pragma once
/// Colours: the terminal colors that show the state of an actor or a job. Each constant is the ANSI
/// code that turns a color on.

#include <string_view>

namespace weft {

inline constexpr std::string_view kRed =
    "\x1b[31m";  ///< for an actor that can't continue by itself, or has failed
inline constexpr std::string_view kYellow =
    "\x1b[33m";  ///< for an actor that waits for others, or that a debugger holds
inline constexpr std::string_view kGreen = "\x1b[32m";  ///< for an actor that works
inline constexpr std::string_view kBold = "\x1b[1m";
inline constexpr std::string_view kReversed = "\x1b[7m";
inline constexpr std::string_view kPlain = "\x1b[0m";  ///< turns colors off

/// Returns the color for the state of an actor or a job; "" for a state that has no color, such as
/// "idle".
std::string_view colour_of(std::string_view state) noexcept;

/// Returns whether stdout is a terminal and NO_COLOR isn't set.
bool wants_colours();

}  // namespace weft
