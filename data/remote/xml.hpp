#pragma once
/// Reads the XML of S3's answers, which consists of elements and texts. The depth and the number of
/// elements are limited.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct XmlElement {
  std::string name{};  ///< without namespace prefix
  std::string text{};  ///< all texts before, between and after children, joined
  std::vector<XmlElement> children{};

  /// Returns the first child with this name, or null if there is none.
  const XmlElement* find(std::string_view child) const;
  /// Returns the text of the first child with this name, or "" if there is none.
  std::string text_of(std::string_view child) const;
};

/// Returns the root element. Skips attributes, comments and instructions. Throws corrupt if the
/// text isn't such XML, or has declarations ("<!DOCTYPE") or entities other than XML's five.
XmlElement parse_xml(std::string_view text);

}  // namespace weft
