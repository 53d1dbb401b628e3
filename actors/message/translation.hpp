#pragma once
/// Translates messages between programs whose schemas of an endpoint differ. The rules are those of
/// Avro's schema resolution (https://avro.apache.org/docs/1.11.1/specification/), for the types of
/// <weft/message.hpp>.

#include <string>

#include <weft/message/bytes.hpp>

#include "actors/message/schema.hpp"

namespace weft {

/// Returns why values of type `from` can't become values of type `to`; "" if they can:
///
///   a number      becomes a wider number that has all its values, and a bool only a bool
///   a record      fields are found by name if both have names, and else by position; fields that
///                 only `from` has are dropped; fields that only `to` has get their default value,
///                 but tensors, pipes and types with a MessageCodec of their own have none
///   T             also becomes an optional T
///   other types   become the same type; their elements are translated
std::string why_untranslatable(const SchemaType& from, const SchemaType& to);

/// Translates one value of a pair of types for which why_untranslatable() returns "". Throws
/// corrupt if the bytes aren't a value of type `from`, and invalid_argument if the translation is
/// too long.
void translate(const SchemaType& from, const SchemaType& to, MessageReader& in, MessageWriter& out);

/// The following functions do the same for the arguments and the result of an endpoint. A caller
/// that expects no result drops it. `caller` and `callee` are the schemas of the two programs.
std::string why_untranslatable(const EndpointSchema& caller, const EndpointSchema& callee);
MessageWriter translated_arguments(const EndpointSchema& caller, const EndpointSchema& callee,
                                   const MessageWriter& arguments);
MessageWriter translated_result(const EndpointSchema& callee, const EndpointSchema& caller,
                                MessageReader result);

}  // namespace weft
