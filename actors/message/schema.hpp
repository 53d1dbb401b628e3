#pragma once
/// The schemas of messages, as texts of <weft/message.hpp>, and their syntax:
///
///   endpoint = name "(" [type {"," type}] ")" ["->" type] [" const"]
///   type     = base {"[]" | "[" count "]" | "?"}
///   base     = ["enum:"] number | "bool" | "text" | "tensor" | "actor"
///            | ("pipe_reader" | "pipe_writer") "<" type ">"
///            | "{" [field {"," field}] "}" | "map<" type "," type ">" | other
///   number   = ("i" | "u" | "f") bits
///   field    = [name ":"] type ["=" hex digits of the default value]
///   other    = the schema of a type with a MessageCodec of its own: letters, digits, "_", "."

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct SchemaField;

struct SchemaType {
  enum class Kind : std::uint8_t {
    boolean,
    integer,
    natural,  ///< an integer without a sign
    real,
    text,
    tensor,
    actor,
    list,
    array,
    optional,
    map,
    record,
    other,
  };
  Kind kind = Kind::other;
  bool is_enum = false;
  std::uint32_t bytes = 0;         ///< size of a number
  std::uint32_t count = 0;         ///< number of elements of an array
  std::vector<SchemaField> parts;  ///< fields of a record; key and value of a map; or the type of
                                   ///< the elements
  std::string text{};              ///< the schema as text
};

struct SchemaField {
  std::string name{};  ///< "": none
  SchemaType type{};
  std::optional<std::vector<std::byte>> initial{};  ///< the default value, unless its bytes are 0
};

struct EndpointSchema {
  std::string name{};
  std::vector<SchemaType> arguments{};
  std::optional<SchemaType> result{};
  bool is_const = false;
  std::string text{};  ///< the schema as text
};

/// Reads a schema that another program wrote. Throws corrupt, with the position of the first
/// character that doesn't fit, or if types are nested deeper than 32 levels.
EndpointSchema parse_endpoint_schema(std::string_view text);

}  // namespace weft
