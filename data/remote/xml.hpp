#pragma once
/// Reads the XML of S3's answers, which consists of elements and texts. Depth and number of
/// elements are limited.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct XmlElement {
  std::string name{};  ///< without namespace prefix
  std::string text{};  ///< all texts around its children, joined
  std::vector<XmlElement> children{};

  /// Returns the first child of that name; null if there is none.
  const XmlElement* find(std::string_view child) const;
  /// Returns the text of that child; "" if there is none.
  std::string text_of(std::string_view child) const;
};

/// Returns the root element. Skips attributes, comments and instructions. Throws corrupt for text
/// that isn't such XML; declarations ("<!DOCTYPE") and entities other than XML's five are refused.
XmlElement parse_xml(std::string_view text);

}  // namespace weft
