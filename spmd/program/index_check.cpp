#include "spmd/program/index_check.hpp"

#include <algorithm>

namespace weft {
namespace {

/// The default of torch's ignore_index.
constexpr std::int64_t kTorchIgnored = -100;

}  // namespace

IndexCheck::IndexCheck(const Program& program, OpId op, ValueId source)
    : limit(program.op_attrs(op)[0]),
      ignored(program.op_attrs(op)[1]),
      new_tokens(program.op_attrs(op).size() > 2 ? program.op_attrs(op)[2] : -1),
      loc(program.loc(op)) {
  const auto found = std::ranges::find(program.inputs, source, &ProgramInput::value);
  if (found == program.inputs.end()) return;
  input = static_cast<std::uint32_t>(found - program.inputs.begin());
  input_name = found->name;
}

void IndexCheck::refuse_tokens(std::int64_t length, const std::string& at) const {
  constexpr std::string_view kLength = ".length";  // ends the name of a cache's length
  std::string cache = "a KeyValueCache";
  if (input_name.ends_with(kLength)) {
    const auto name = std::string_view(input_name).substr(0, input_name.size() - kLength.size());
    cache = fmt::format("KeyValueCache '{}'", name);
  }
  const std::int64_t capacity = limit + new_tokens - 1;
  fail(Errc::invalid_argument,
       "{} of length {} is full: the next tokens would end at position {}, but the last position "
       "is {}; make the cache longer, or call reset(){}",
       cache, capacity, length + new_tokens - 1, capacity - 1, at);
}

void IndexCheck::refuse(std::int64_t index) const {
  const std::string at = loc.empty() ? "" : " (at " + loc + ")";
  if (new_tokens >= 0) refuse_tokens(index, at);
  std::string expected = fmt::format("0 to {}", limit - 1);
  if (ignored != 0) expected += fmt::format(", or {}, which is ignored", ignored);
  const bool is_unasked = index == kTorchIgnored && ignored == 0;
  const std::string message =
      fmt::format("a label or index is {}: expected {}{}{}", index, expected,
                  is_unasked ? "; if this value marks labels to ignore, use cross_entropy(logits, "
                               "labels, {.ignore_index = -100})"
                             : "",
                  at);
  throw IndexFault(message, index, input);
}

}  // namespace weft
