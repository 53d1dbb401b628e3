#pragma once
/// The types that messages to actors may have, and how their values become bytes.
///
/// A message has numbers, bool, enums, std::string, std::vector, std::array, std::optional,
/// std::map, HostTensor, and aggregates of these with up to 16 fields:
///
///   struct Range { std::int64_t begin = 0, end = 0; };        // needs nothing else
///
///   struct Action { int action = 0; float log_probability = 0; };
///   WEFT_MESSAGE(Action, action, log_probability);            // gives its fields names
///
/// Bytes are positional and little-endian. The elements of a HostTensor aren't copied if they are
/// in shared memory. Each type has a schema, a text such as "{action:i32,log_probability:f32}". Two
/// programs whose schemas of an endpoint are equal understand each other. If they differ, messages
/// are translated if that loses nothing that the receiver needs: fields are matched by name,
/// fields that the sender lacks get the receiver's default value (tensors have none), and numbers
/// may become wider.

#include <weft/message/aggregate.hpp>
#include <weft/message/bytes.hpp>
#include <weft/message/codec.hpp>
#include <weft/message/containers.hpp>
