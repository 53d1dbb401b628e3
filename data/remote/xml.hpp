#pragma once
/// The XML that S3 answers with: elements and their texts, of bounded depth and number.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct XmlElement {
  std::string name{};  ///< without the prefix of a namespace
  std::string text{};  ///< the texts between its children are joined
  std::vector<XmlElement> children{};

  /// The first child of that name; null if there is none.
  const XmlElement* find(std::string_view child) const;
  /// The text of that child; "" if there is none.
  std::string text_of(std::string_view child) const;
};

/// The root element. Attributes, comments and instructions are passed over. Throws corrupt for what
/// is no such text: other declarations ("<!DOCTYPE") and entities than XML's own five aren't read.
XmlElement parse_xml(std::string_view text);

}  // namespace weft
