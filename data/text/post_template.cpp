#include "data/text/post_template.hpp"

#include <optional>
#include <string>
#include <utility>

#include "data/text/vocabulary.hpp"

namespace weft {
namespace {

/// A template, or std::nullopt if the component of the file adds no tokens.
using MaybeTemplate = std::optional<PostTemplate>;

std::int32_t read_id(const JsonView& json) {
  return static_cast<std::int32_t>(json.integer(0, kTokenIdMax - 1));
}

std::vector<std::int32_t> read_special_ids(const JsonView& special_tokens,
                                           const std::string& name) {
  const JsonView ids = special_tokens[name]["ids"];
  std::vector<std::int32_t> special;
  for (const JsonView& id : ids.items()) special.push_back(read_id(id));
  return special;
}

std::vector<TemplatePart> read_parts(const JsonView& parts, const JsonView& special_tokens,
                                     int sequences) {
  std::vector<TemplatePart> made;
  for (const JsonView& part : parts.items()) {
    const JsonView sequence = part["Sequence"];
    const bool is_special = sequence.is_null();
    const JsonView of = is_special ? part["SpecialToken"] : sequence;
    TemplatePart& read = made.emplace_back();
    read.type_id = read_id(of["type_id"]);
    if (is_special) {
      read.special = read_special_ids(special_tokens, of["id"].text());
      continue;
    }
    const std::string name = of["id"].text();
    if (name != "A" && (name != "B" || sequences < 2)) {
      of["id"].refuse(sequences < 2 ? "A" : "A or B");
    }
    read.sequence = name == "A" ? 0 : 1;
  }
  return made;
}

MaybeTemplate read_template(const JsonView& json) {
  const JsonView special_tokens = json["special_tokens"];
  return PostTemplate{.single = read_parts(json["single"], special_tokens, 1),
                      .pair = read_parts(json["pair"], special_tokens, 2)};
}

/// Returns the id in a pair such as ["[SEP]", 102].
std::vector<std::int32_t> read_named_id(const JsonView& json) {
  const std::vector<JsonView> parts = json.items();
  if (parts.size() != 2) json.refuse("a token and its id");
  return {read_id(parts[1])};
}

MaybeTemplate read_bert_processing(const JsonView& json) {
  const TemplatePart cls{.special = read_named_id(json["cls"])};
  const TemplatePart sep{.special = read_named_id(json["sep"])};
  TemplatePart second_sep = sep;
  second_sep.type_id = 1;
  return PostTemplate{
      .single = {cls, {.sequence = 0}, sep},
      .pair = {cls, {.sequence = 0}, sep, {.sequence = 1, .type_id = 1}, second_sep}};
}

MaybeTemplate read_roberta_processing(const JsonView& json) {
  const TemplatePart cls{.special = read_named_id(json["cls"])};
  const TemplatePart sep{.special = read_named_id(json["sep"])};
  return PostTemplate{.single = {cls, {.sequence = 0}, sep},
                      .pair = {cls, {.sequence = 0}, sep, sep, {.sequence = 1}, sep}};
}

MaybeTemplate read_processor(const JsonView& json);

MaybeTemplate read_processors(const JsonView& json) {
  MaybeTemplate found;
  for (const JsonView& processor : json["processors"].items()) {
    MaybeTemplate next = read_processor(processor);
    if (found && next) {
      fail(Errc::version, "{}: is the second processor that adds tokens; weft reads only one",
           processor.place());
    }
    if (next) found = std::move(next);
  }
  return found;
}

MaybeTemplate read_processor(const JsonView& json) {
  static const std::vector<JsonKind<MaybeTemplate>> kKinds{
      {"BertProcessing", read_bert_processing},
      // This component changes only positions in the text, not tokens.
      {"ByteLevel", [](const JsonView&) { return MaybeTemplate{}; }},
      {"RobertaProcessing", read_roberta_processing},
      {"Sequence", read_processors},
      {"TemplateProcessing", read_template},
  };
  return read_kind<MaybeTemplate>(json, kKinds);
}

}  // namespace

PostTemplate read_post_template(const JsonView& json) {
  if (json.is_null()) return {};
  return read_processor(json).value_or(PostTemplate{});
}

}  // namespace weft
