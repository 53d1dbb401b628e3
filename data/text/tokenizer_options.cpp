#include "data/text/tokenizer_options.hpp"

#include <string>

#include "data/text/vocabulary.hpp"

namespace weft {
namespace {

constexpr std::int64_t kLengthMax = std::int64_t{1} << 30;
/// The maximum length of padding that a file may specify, so that a small file can't make weft
/// allocate much memory.
constexpr std::int64_t kFilePaddingMax = std::int64_t{1} << 24;

TextSide read_side(const JsonView& json) {
  const std::string side = json.text_or("Right");
  if (side == "Right") return TextSide::right;
  if (side == "Left") return TextSide::left;
  json.refuse("Right or Left");
}

Truncation::Strategy read_strategy(const JsonView& json) {
  const std::string name = json.text_or("LongestFirst");
  if (name == "LongestFirst") return Truncation::Strategy::longest_first;
  if (name == "OnlyFirst") return Truncation::Strategy::only_first;
  if (name == "OnlySecond") return Truncation::Strategy::only_second;
  json.refuse("LongestFirst, OnlyFirst or OnlySecond");
}

void check_number(std::string_view name, std::int64_t value, std::int64_t least) {
  if (value >= least && value <= kLengthMax) return;
  fail(Errc::invalid_argument, "{} = {}: expected {} to {}", name, value, least, kLengthMax);
}

}  // namespace

std::optional<Truncation> read_truncation(const JsonView& json) {
  if (json.is_null()) return {};
  return Truncation{.max_length = json["max_length"].integer(0, kLengthMax),
                    .strategy = read_strategy(json["strategy"]),
                    .side = read_side(json["direction"])};
}

std::optional<Padding> read_padding(const JsonView& json) {
  if (json.is_null()) return {};
  Padding padding{
      .id = static_cast<std::int32_t>(json["pad_id"].integer(0, kTokenIdMax - 1)),
      .type_id = static_cast<std::int32_t>(json["pad_type_id"].integer(0, kTokenIdMax - 1)),
      .side = read_side(json["direction"])};
  const JsonView strategy = json["strategy"];
  if (strategy.is_object()) {
    padding.length = strategy["Fixed"].integer(0, kFilePaddingMax);
  } else if (strategy.text_or("BatchLongest") != "BatchLongest") {
    strategy.refuse("BatchLongest, or an object with Fixed");
  }
  const JsonView multiple = json["pad_to_multiple_of"];
  if (!multiple.is_null()) padding.multiple_of = multiple.integer(1, kFilePaddingMax);
  return padding;
}

void check_truncation(const Truncation& truncation) {
  check_number("max_length", truncation.max_length, 0);
}

void check_padding(const Padding& padding) {
  check_number("padding.length", padding.length, 0);
  check_number("padding.multiple_of", padding.multiple_of, 1);
  check_number("padding.id", padding.id, 0);
  check_number("padding.type_id", padding.type_id, 0);
}

}  // namespace weft
