#include "data/formats/strict_json.hpp"

#include <algorithm>

#include <weft/tensor/error.hpp>

#include "data/formats/in_quotes.hpp"

namespace weft {

nlohmann::json parse_json(std::string_view text) {
  static constexpr int kDepthMax = 64;
  const auto limit_depth = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > kDepthMax) fail(Errc::corrupt, "the JSON is more than {} levels deep", kDepthMax);
    return true;
  };
  try {
    return nlohmann::json::parse(text.begin(), text.end(), limit_depth);
  } catch (const nlohmann::json::exception& error) {
    constexpr std::size_t kReasonBytesMax = 240;  // what() quotes the text, which may be long
    fail(Errc::corrupt, "isn't valid JSON: {:?}",
         std::string_view(error.what()).substr(0, kReasonBytesMax));
  }
}

bool StrictJson::null() { refuse("null"); }
bool StrictJson::boolean(bool value) { refuse(value ? "true" : "false"); }
bool StrictJson::number_integer(std::int64_t value) {
  refuse(value == 0 ? "-0" : fmt::format("{}", value));
}
bool StrictJson::number_unsigned(std::uint64_t value) { refuse(fmt::format("{}", value)); }
bool StrictJson::number_float(double, const std::string& text) {
  constexpr std::size_t kDigitsMax = 40;
  refuse(text.substr(0, kDigitsMax));
}
bool StrictJson::string(std::string& value) { refuse(in_quotes(value)); }
bool StrictJson::binary(nlohmann::json::binary_t&) { refuse("binary data"); }
bool StrictJson::start_object(std::size_t) { refuse("an object"); }
bool StrictJson::start_array(std::size_t) { refuse("an array"); }

bool StrictJson::parse_error(std::size_t at, const std::string&,
                             const nlohmann::detail::exception& error) {
  constexpr std::size_t kReasonBytesMax = 240;  // the reason quotes the text, which may be long
  const std::string_view reason = error.what();
  fail(Errc::corrupt, "{}: invalid JSON at byte {} of {}: {}", what_, at, json_bytes_,
       reason.substr(0, kReasonBytesMax));
}

void StrictJson::read(std::span<const std::byte> json) {
  json_bytes_ = json.size();
  // The parser would take a zero byte for the end of the text.
  const auto zero = std::ranges::find(json, std::byte{0});
  if (zero != json.end()) {
    fail(Errc::corrupt, "{}: byte {} of {} is zero, which JSON can't have; is the file damaged?",
         what_, zero - json.begin(), json.size());
  }
  const std::string_view text(reinterpret_cast<const char*>(json.data()), json.size());
  nlohmann::json::sax_parse(text.begin(), text.end(), this);
}

void StrictJson::refuse(std::string_view found) const {
  fail(Errc::corrupt, "{}: {}: found {}; expected {}", what_, place(), found, expected());
}

void StrictJson::refuse_second(std::string_view owner, std::string_view key) const {
  fail(Errc::corrupt, "{}: {} has the key {} twice, so its value is ambiguous", what_, owner,
       in_quotes(key));
}

}  // namespace weft
