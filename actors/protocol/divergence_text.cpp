#include "actors/protocol/divergence_text.hpp"

#include <fmt/format.h>

#include "actors/protocol/failure_text.hpp"
#include "spmd/tensor/runtime.hpp"
#include "spmd/text/listing_difference.hpp"

namespace weft {
namespace {

std::string last_of(const LoopEnded& ended) {
  return ended.last.empty() ? "" : ", the last for " + ended.last;
}

}  // namespace

std::string describe_divergence(const ProgramSeen& first, const std::string& first_name,
                                const ProgramSeen& second, const std::string& second_name) {
  // The order in which the reports arrived depends on chance, so the lower worker is named first.
  if (second.worker < first.worker) {
    return describe_divergence(second, second_name, first, first_name);
  }
  std::string text = fmt::format("{} and {} traced different programs for run {}", first_name,
                                 second_name, first.run);
  if (!first.site.empty() && !second.site.empty()) {
    text += fmt::format(", worker {} for {}, worker {} for {}", first.worker, first.site,
                        second.worker, second.site);
  }
  bool is_of_inputs = false;
  if (const auto [line, a, b] = first_difference(first.text, second.text); line != 0) {
    is_of_inputs = trimmed(a).starts_with("program(") && trimmed(b).starts_with("program(");
    text += fmt::format("; the first line that differs is {}: worker {}: `{}`, worker {}: `{}`",
                        line, first.worker, trimmed(a), second.worker, trimmed(b));
  }
  text += "; every worker's loop must do the same tensor operations in the same order";
  if (is_read(first.site) != is_read(second.site)) return text + kReadsAreCollective;
  if (is_of_inputs) {
    text +=
        ", on tensors of the same types: to_device() takes the whole batch in every worker, "
        "to_device_local() takes the same number of rows in each worker";
  }
  return text;
}

std::string describe_uneven(const LoopEnded& first, const std::string& first_name,
                            const LoopEnded& second, const std::string& second_name) {
  return fmt::format(
      "{} ended its loop after {} programs{}, but {} ended after {}{}: every worker's loop "
      "must run the same programs{}",
      first_name, first.runs, last_of(first), second_name, second.runs, last_of(second),
      is_read(first.last) != is_read(second.last) ? kReadsAreCollective : "");
}

}  // namespace weft
