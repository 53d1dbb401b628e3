#pragma once
/// Checks that a document follows its schema in schema/inspect/.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

namespace weft::testing {

inline const std::filesystem::path kSchemas =
    std::filesystem::path(WEFT_TEST_DIR) / "../schema/inspect";

class JsonSchema {
 public:
  /// `name` is the file's name: "ps" for the schema "weft.ps/1".
  explicit JsonSchema(const std::string& name)
      : json_(nlohmann::json::parse(std::ifstream(kSchemas / (name + ".json")))) {
    valijson::SchemaParser().populateSchema(valijson::adapters::NlohmannJsonAdapter(json_),
                                            schema_);
  }

  const nlohmann::json& json() const { return json_; }
  bool accepts(const nlohmann::json& document) const {
    return valijson::Validator().validate(
        schema_, valijson::adapters::NlohmannJsonAdapter(document), nullptr);
  }
  /// Returns the validator's message; "" if the document is valid.
  std::string faults_of(const nlohmann::json& document) const {
    valijson::ValidationResults results;
    valijson::Validator().validate(schema_, valijson::adapters::NlohmannJsonAdapter(document),
                                   &results);
    std::string text;
    for (valijson::ValidationResults::Error error; results.popError(error);) {
      for (const std::string& place : error.context) text += place;
      text += ": " + error.description + "\n";
    }
    return text;
  }

 private:
  nlohmann::json json_;
  valijson::Schema schema_;
};

/// Appends the pointers to all members of all objects in the document to `found`.
inline void add_members(const nlohmann::json& json, const nlohmann::json::json_pointer& at,
                        std::vector<nlohmann::json::json_pointer>& found) {
  if (json.is_object()) {
    for (const auto& [name, value] : json.items()) {
      found.push_back(at / name);
      add_members(value, at / name, found);
    }
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i) add_members(json[i], at / i, found);
  }
}

inline nlohmann::json of_another_type(const nlohmann::json& value) {
  return value.is_object() || value.is_array() ? nlohmann::json("text") : nlohmann::json::object();
}

/// Expects that a document fits its schema, and that it doesn't if any field is removed or gets
/// another type. So the schema describes all fields of the document.
inline void expect_described(const std::string& text) {
  const nlohmann::json document = nlohmann::json::parse(text);
  const std::string id = document.at("schema");
  SCOPED_TRACE(id);
  const std::size_t slash = id.find('/');
  ASSERT_TRUE(id.starts_with("weft.") && slash != id.npos) << id;
  const JsonSchema schema(id.substr(5, slash - 5));
  EXPECT_EQ(schema.faults_of(document), "") << document.dump(1);
  std::vector<nlohmann::json::json_pointer> members;
  add_members(document, nlohmann::json::json_pointer(), members);
  for (const nlohmann::json::json_pointer& member : members) {
    nlohmann::json less = document;
    less.at(member.parent_pointer()).erase(member.back());
    EXPECT_FALSE(schema.accepts(less)) << "without " << member.to_string();
    nlohmann::json other = document;
    other.at(member) = of_another_type(document.at(member));
    EXPECT_FALSE(schema.accepts(other)) << member.to_string() << " of another type";
  }
  nlohmann::json more = document;
  more["a field of tomorrow"] = 1;
  EXPECT_TRUE(schema.accepts(more));
}

}  // namespace weft::testing
