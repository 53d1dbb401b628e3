#include "actors/message/translation.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include <weft/message/codec.hpp>
#include <weft/tensor/error.hpp>

#include "actors/message/tensor_bytes.hpp"

namespace weft {
namespace {

using Kind = SchemaType::Kind;

/// The size of a reference to an actor: the key of its system, and the actor's number.
constexpr std::size_t kActorBytes = sizeof(std::uint64_t) + sizeof(std::uint32_t);

bool is_number(const SchemaType& type) { return type.bytes > 0; }

/// Returns whether the number type `to` has every value of the number type `from`.
bool widens(const SchemaType& from, const SchemaType& to) {
  if (from.is_enum != to.is_enum) return false;
  if (from.kind == to.kind) {
    return from.bytes == to.bytes || (from.bytes < to.bytes && to.bytes <= 8);
  }
  return from.kind == Kind::natural && to.kind == Kind::integer && from.bytes < to.bytes &&
         to.bytes <= 8;
}

bool has_names(const SchemaType& record) {
  return !record.parts.empty() &&
         std::ranges::all_of(record.parts, [](const auto& field) { return !field.name.empty(); });
}

/// Returns the field of `from` whose value becomes field `index` of `to`; null if there is none.
const SchemaField* source_of(const SchemaType& from, const SchemaType& to, std::size_t index) {
  if (!has_names(from) || !has_names(to)) return &from.parts[index];
  const auto found = std::ranges::find(from.parts, to.parts[index].name, &SchemaField::name);
  return found == from.parts.end() ? nullptr : &*found;
}

/// Returns whether values of the type can be read without the program that has written them.
bool is_readable(const SchemaType& type) {
  return type.kind != Kind::other &&
         std::ranges::all_of(type.parts, [](const auto& part) { return is_readable(part.type); });
}

bool has_default(const SchemaField& field) {
  const SchemaType& type = field.type;
  if (type.kind == Kind::tensor || type.kind == Kind::other) return false;
  if (type.kind != Kind::record && type.kind != Kind::array) return true;
  return std::ranges::all_of(type.parts, has_default);
}

std::string why_record(const SchemaType& from, const SchemaType& to) {
  const bool by_name = has_names(from) && has_names(to);
  if (!by_name && from.parts.size() != to.parts.size() && !(from.parts.empty() && has_names(to)) &&
      !(to.parts.empty() && has_names(from))) {
    return fmt::format(
        "{} has {} fields and {} has {}, and not both give them names "
        "(WEFT_MESSAGE)",
        from.text, from.parts.size(), to.text, to.parts.size());
  }
  for (std::size_t i = 0; i < to.parts.size(); ++i) {
    const SchemaField* source = from.parts.empty() ? nullptr : source_of(from, to, i);
    if (source == nullptr) {
      if (has_default(to.parts[i])) continue;
      return fmt::format("field \"{}\" of {} is missing, and a {} has no default value",
                         to.parts[i].name, to.text, to.parts[i].type.text);
    }
    if (std::string why = why_untranslatable(source->type, to.parts[i].type); !why.empty()) {
      return why;
    }
  }
  return "";
}

template <std::size_t N>
std::array<std::byte, N> bytes_of(MessageReader& in) {
  std::array<std::byte, N> bytes{};
  in.get(bytes.data(), N);
  return bytes;
}

void translate_number(const SchemaType& from, const SchemaType& to, MessageReader& in,
                      MessageWriter& out) {
  std::array<std::byte, 16> bytes{};
  in.get(bytes.data(), from.bytes);
  if (from.kind == Kind::real && from.bytes != to.bytes) {
    float narrow = 0;  // f32 to f64 is the only such case
    std::memcpy(&narrow, bytes.data(), sizeof(narrow));
    const double wide = narrow;
    return out.put(&wide, sizeof(wide));
  }
  if (from.kind == Kind::integer && (bytes[from.bytes - 1] & std::byte{0x80}) != std::byte{0}) {
    std::fill(bytes.begin() + from.bytes, bytes.end(), std::byte{0xff});  // extends the sign
  }
  out.put(bytes.data(), to.bytes);
}

/// Translates `count` elements. The limit on a message's bytes also limits how long this takes.
void translate_each(std::size_t count, const SchemaType& from, const SchemaType& to,
                    MessageReader& in, MessageWriter& out) {
  for (std::size_t i = 0; i < count; ++i) {
    translate(from, to, in, out);
    (void)out.bytes();
  }
}

void put_default(const SchemaField& field, MessageWriter& out) {
  if (field.initial) return out.put(field.initial->data(), field.initial->size());
  const SchemaType& type = field.type;
  constexpr std::array<std::byte, 16> kZeros{};
  switch (type.kind) {
    case Kind::boolean:
    case Kind::optional: return out.put(kZeros.data(), 1);
    case Kind::integer:
    case Kind::natural:
    case Kind::real: return out.put(kZeros.data(), type.bytes);
    case Kind::text:
    case Kind::list:
    case Kind::map: return out.count(0);
    case Kind::actor: return out.put(kZeros.data(), kActorBytes);
    case Kind::record:
      for (const SchemaField& part : type.parts) put_default(part, out);
      return;
    case Kind::array:
      for (std::uint32_t i = 0; i < type.count; ++i) {
        put_default(type.parts[0], out);
        (void)out.bytes();
      }
      return;
    case Kind::tensor:
    case Kind::other: break;
  }
  WEFT_CHECK(false, field.name);
}

void translate_record(const SchemaType& from, const SchemaType& to, MessageReader& in,
                      MessageWriter& out) {
  std::vector<MessageWriter> values(to.parts.size());
  std::vector<const SchemaField*> sources(to.parts.size());
  for (std::size_t i = 0; i < to.parts.size() && !from.parts.empty(); ++i) {
    sources[i] = source_of(from, to, i);
  }
  for (const SchemaField& field : from.parts) {  // in the order of their bytes
    const auto taker = std::ranges::find(sources, &field);
    MessageWriter dropped;
    if (taker == sources.end()) {
      translate(field.type, field.type, in, dropped);
    } else {
      const auto i = static_cast<std::size_t>(taker - sources.begin());
      translate(field.type, to.parts[i].type, in, values[i]);
    }
  }
  for (std::size_t i = 0; i < to.parts.size(); ++i) {
    if (sources[i] == nullptr) put_default(to.parts[i], values[i]);
    out.append(values[i]);
  }
}

}  // namespace

std::string why_untranslatable(const SchemaType& from, const SchemaType& to) {
  if (from.text == to.text) return "";
  if (to.kind == Kind::optional && from.kind != Kind::optional) {
    return why_untranslatable(from, to.parts[0].type);
  }
  const bool can = is_number(from) && is_number(to)
                       ? widens(from, to)
                       : from.kind == to.kind && from.kind != Kind::other && from.count == to.count;
  if (!can) return fmt::format("a {} can't become a {}", from.text, to.text);
  if (from.kind == Kind::record) return why_record(from, to);
  for (std::size_t i = 0; i < from.parts.size(); ++i) {
    if (std::string why = why_untranslatable(from.parts[i].type, to.parts[i].type); !why.empty()) {
      return why;
    }
  }
  return "";
}

void translate(const SchemaType& from, const SchemaType& to, MessageReader& in,
               MessageWriter& out) {
  if (to.kind == Kind::optional && from.kind != Kind::optional) {
    MessageCodec<bool>::put(out, true);
    return translate(from, to.parts[0].type, in, out);
  }
  switch (from.kind) {
    case Kind::boolean: return MessageCodec<bool>::put(out, in.boolean());
    case Kind::integer:
    case Kind::natural:
    case Kind::real: return translate_number(from, to, in, out);
    case Kind::text: return MessageCodec<std::string>::put(out, MessageCodec<std::string>::get(in));
    case Kind::tensor: return out.tensor(in.tensor());
    case Kind::actor: {
      const auto bytes = bytes_of<kActorBytes>(in);
      return out.put(bytes.data(), bytes.size());
    }
    case Kind::list: {
      const std::size_t count = in.count(0);
      out.count(count);
      return translate_each(count, from.parts[0].type, to.parts[0].type, in, out);
    }
    case Kind::array:
      return translate_each(from.count, from.parts[0].type, to.parts[0].type, in, out);
    case Kind::optional: {
      const bool is_there = in.boolean();
      MessageCodec<bool>::put(out, is_there);
      if (is_there) translate(from.parts[0].type, to.parts[0].type, in, out);
      return;
    }
    case Kind::map: {
      const std::size_t count = in.count(0);
      out.count(count);
      for (std::size_t i = 0; i < count; ++i) {
        for (const std::size_t part : {0, 1}) {
          translate(from.parts[part].type, to.parts[part].type, in, out);
        }
        (void)out.bytes();
      }
      return;
    }
    case Kind::record: return translate_record(from, to, in, out);
    case Kind::other: break;
  }
  WEFT_CHECK(false, from.text);
}

std::string why_untranslatable(const EndpointSchema& caller, const EndpointSchema& callee) {
  if (caller.arguments.size() != callee.arguments.size()) {
    return fmt::format("{} arguments are given, but {} taken", caller.arguments.size(),
                       callee.arguments.size());
  }
  const auto why_not_readable = [](const SchemaType& type) {
    return is_readable(type) ? "" : fmt::format("the bytes of a {} are unknown", type.text);
  };
  for (std::size_t i = 0; i < caller.arguments.size(); ++i) {
    if (std::string why = why_untranslatable(caller.arguments[i], callee.arguments[i]);
        !why.empty()) {
      return why;
    }
    if (std::string why = why_not_readable(caller.arguments[i]); !why.empty()) return why;
  }
  if (!caller.result) return "";
  if (!callee.result) {
    return fmt::format("a {} is expected, but nothing returned", caller.result->text);
  }
  if (std::string why = why_untranslatable(*callee.result, *caller.result); !why.empty()) {
    return why;
  }
  return why_not_readable(*callee.result);
}

MessageWriter translated_arguments(const EndpointSchema& caller, const EndpointSchema& callee,
                                   const MessageWriter& arguments) {
  const std::vector<MessagePayload> payloads = payloads_of(arguments);
  MessageReader in(arguments.bytes(), payloads);
  MessageWriter out;
  for (std::size_t i = 0; i < caller.arguments.size(); ++i) {
    translate(caller.arguments[i], callee.arguments[i], in, out);
  }
  in.finish();
  return out;
}

MessageWriter translated_result(const EndpointSchema& callee, const EndpointSchema& caller,
                                MessageReader result) {
  MessageWriter out;
  if (!caller.result) return out;
  translate(*callee.result, *caller.result, result, out);
  result.finish();
  return out;
}

}  // namespace weft
