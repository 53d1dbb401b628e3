#include "inspect/why/stack_places.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr std::size_t kFrameCountMax = 3;

/// Returns whether the frame is in the C or C++ library, the loader, weft, or a library below weft.
/// The author of a loop doesn't want to see such frames.
bool is_library(const StackFrame& frame) {
  static constexpr std::array<std::string_view, 11> kObjects{
      "libc.so",    "libc-", "libstdc++.", "libgcc_s.", "libm.so", "libpthread",
      "libweft.so", "ld-",   "[vdso",      "libcaf_",   "libdnnl."};
  const auto is_in = [&](std::string_view object) { return frame.object.starts_with(object); };
  if (std::ranges::any_of(kObjects, is_in)) return true;
  static constexpr std::array<std::string_view, 9> kPrefixes{
      "std::", "__",       "_start",      "weft::", "caf:", "non-virtual thunk",
      "main(", "decltype", "operator new"};
  const std::string_view name = frame.function;
  // This is a lambda of a template of weft, whose name can't be demangled.
  const std::string_view after = name.substr(std::min(name.find_first_not_of("_Z"), name.size()));
  if (name.starts_with("_Z") && after.starts_with("N4weft")) return true;
  return name == "?" || name == "main" ||
         std::ranges::any_of(kPrefixes, [&](std::string_view prefix) {
           return name.starts_with(prefix) ||
                  // The name of a template function begins with its return type, so the namespace
                  // comes after a blank.
                  name.find(fmt::format(" {}", prefix)) < name.find('(');
         });
}

constexpr std::size_t kNameLengthMax = 40;

}  // namespace

std::string short_name(std::string name) {
  constexpr std::string_view kNameless = "(anonymous namespace)::";
  for (auto at = name.find(kNameless); at != std::string::npos; at = name.find(kNameless)) {
    name.erase(at, kNameless.size());
  }
  if (name.size() <= kNameLengthMax) return name;
  const auto parameters = name.find('(');
  if (parameters != std::string::npos) name = name.substr(0, parameters) + "(...)";
  const auto begin = name.find('<');
  const auto end = name.rfind('>');
  if (name.size() <= kNameLengthMax || begin == std::string::npos || end <= begin) return name;
  return name.replace(begin + 1, end - begin - 1, "...");
}

std::vector<StackFrame> users_frames(const std::vector<StackFrame>& frames) {
  std::vector<StackFrame> part;
  for (const StackFrame& frame : frames) {
    if (part.size() == kFrameCountMax) break;
    if (!is_library(frame)) part.push_back(frame);
  }
  return part;
}

std::vector<StackFrame> users_part(const std::vector<StackFrame>& frames) {
  std::vector<StackFrame> part = users_frames(frames);
  if (part.empty()) {
    part.assign(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(
                                                     std::min(frames.size(), kFrameCountMax)));
  }
  return part;
}

std::string to_text(const std::vector<StackFrame>& frames) {
  std::string text;
  for (const StackFrame& frame : frames) {
    if (!text.empty()) text += " < ";
    text += short_name(frame.function);
    if (!frame.file.empty()) text += fmt::format(" {}:{}", frame.file, frame.line);
  }
  return text;
}

}  // namespace weft
