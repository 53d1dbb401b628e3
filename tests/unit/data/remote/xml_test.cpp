#include "data/remote/xml.hpp"

#include <gtest/gtest.h>

#include <weft/tensor/error.hpp>

#include "tests/support/expect_error.hpp"

namespace weft::xml_test {
namespace {

using testing::expect_error;

TEST(Xml, HasElementsAndTheirTexts) {
  const XmlElement root = parse_xml(
      "<?xml version=\"1.0\" encoding='UTF-8'?>\n<!-- > -->\n<s3:Root xmlns=\"http://x/>\" a='<'>"
      "a &lt;&amp;&#x41;&#66;&quot;&apos; &#xE9;&#8364;&#x1F600;<Key >k</Key><Empty/><Key>l</Key>"
      "<!--no--> b</s3:Root>\n");
  EXPECT_EQ(root.name, "Root");
  EXPECT_EQ(root.text, "a <&AB\"' \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 b");
  EXPECT_EQ(root.children.size(), 3U);
  EXPECT_EQ(root.text_of("Key"), "k");
  EXPECT_EQ(root.text_of("Empty"), "");
  EXPECT_EQ(root.find("Absent"), nullptr);
}

TEST(Xml, IsRefusedWhereItIsNone) {
  std::string many = "<a>";
  for (int i = 0; i < 200'000; ++i) many += "<b/>";
  for (const std::string& text :
       {std::string(), std::string("text"), std::string("<a>"), std::string("<a></b>"),
        std::string("<a/><b/>"), std::string("<a"), std::string("<a b='"), std::string("<>x</>"),
        std::string("<a>&who;</a>"), std::string("<a>&#0;</a>"), std::string("<a>&#x110000;</a>"),
        std::string("<a>& </a>"), std::string("<a><![CDATA[x]]></a>"), std::string("<a></a"),
        std::string("<!DOCTYPE a><a/>"), many + "</a>", std::string(100, '<')}) {
    expect_error(Errc::corrupt, {"XML at byte"}, [&] { (void)parse_xml(text); });
  }
}

}  // namespace
}  // namespace weft::xml_test
