#include "spmd/program/index_check.hpp"

#include <algorithm>

#include <weft/error.hpp>

namespace weft {
namespace {

/// torch's default.
constexpr std::int64_t kTorchIgnored = -100;

/// The state "NAME.length" from which the value is counted, a KeyValueCache's; "" if it is none.
std::string cache_of(const Program& program, ValueId value) {
  constexpr std::string_view kLength = ".length";
  for (OpId op = program.defining_op(value); op != kNoId; op = program.defining_op(value)) {
    if (program.kind(op) != OpKind::add && program.kind(op) != OpKind::sharding_constraint) break;
    value = program.op_operands(op)[0];
  }
  const auto input = std::ranges::find(program.inputs, value, &ProgramInput::value);
  if (input == program.inputs.end() || input->kind != InputKind::buffer) return "";
  if (!input->name.ends_with(kLength)) return "";
  return input->name.substr(0, input->name.size() - kLength.size());
}

}  // namespace

IndexCheck::IndexCheck(const Program& program, OpId op)
    : limit(program.op_attrs(op)[0]),
      ignored(program.op_attrs(op)[1]),
      loc(program.loc(op)),
      cache(cache_of(program, program.op_operands(op)[0])) {}

void IndexCheck::refuse(std::int64_t index) const {
  const std::string at = loc.empty() ? "" : " (at " + loc + ")";
  if (!cache.empty()) {
    fail(Errc::invalid_argument,
         "KeyValueCache '{}' of length {} is full: the next tokens end at position {}, and its "
         "last is {}; make it longer, or call reset(){}",
         cache, limit, index, limit - 1, at);
  }
  std::string expected = fmt::format("0 to {}", limit - 1);
  if (ignored != 0) expected += fmt::format(", or {}, which is ignored", ignored);
  const bool is_unasked = index == kTorchIgnored && ignored == 0;
  fail(Errc::invalid_argument, "a label or index is {}: expected {}{}{}", index, expected,
       is_unasked ? "; where it marks labels to be left out, say so: cross_entropy(logits, labels, "
                    "{.ignore_index = -100})"
                  : "",
       at);
}

}  // namespace weft
