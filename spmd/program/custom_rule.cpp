#include <weft/spmd/program/custom_rule.hpp>

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include <weft/spmd/error.hpp>

namespace weft {
namespace {

/// As many as a factor rule of the passes has.
constexpr std::size_t kFactorCountMax = 32;
constexpr std::string_view kReduction = " reduction={";
constexpr std::string_view kNeedReplication = " need_replication={";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; }

/// Reads "b s, s -> b s".
class RuleReader {
 public:
  explicit RuleReader(std::string_view text) : text_(text) {}

  CustomRule read() {
    do tensor();
    while (accept(","));
    if (!accept("->")) refuse_here("',' or '->'");
    tensor();
    if (!at_end()) refuse_here("the end, as one result is all there is,");
    return std::move(rule_);
  }

 private:
  bool at_end() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ == text_.size();
  }

  bool accept(std::string_view token) {
    if (at_end() || !text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  void tensor() {
    std::vector<std::size_t>& dims = rule_.dims.emplace_back();
    while (!at_end() && is_letter(text_[at_])) {
      const std::size_t begin = at_;
      while (at_ < text_.size() && is_word(text_[at_])) ++at_;
      const std::size_t factor = number(text_.substr(begin, at_ - begin));
      if (std::ranges::count(dims, factor) > 0) {
        refuse("factor {} stands twice for one tensor; give each of its dims another name",
               rule_.factors[factor].name);
      }
      dims.push_back(factor);
    }
    if (dims.size() > kDimCountMax) {
      refuse("a tensor has {} dims; at most {} are possible", dims.size(), kDimCountMax);
    }
  }

  std::size_t number(std::string_view name) {
    const auto found = std::ranges::find(rule_.factors, name, &CustomRule::Factor::name);
    if (found == rule_.factors.end()) {
      rule_.factors.push_back({std::string(name)});
      if (rule_.factors.size() > kFactorCountMax) {
        refuse("it has more than {} factors", kFactorCountMax);
      }
      return rule_.factors.size() - 1;
    }
    return static_cast<std::size_t>(found - rule_.factors.begin());
  }

  [[noreturn]] void refuse_here(std::string_view expected) {
    const std::string found =
        at_end() ? "the end" : fmt::format("'{}'", text_.substr(at_, text_.find(' ', at_) - at_));
    refuse(
        "expected {} at character {}, found {}; write a name for each dim and a comma between "
        "operands, as in \"b s, s -> b s\"",
        expected, at_ + 1, found);
  }

  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(Errc::invalid_argument, "sharding_rule \"{}\": {}", text_,
         fmt::format(format, std::forward<Args>(args)...));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  CustomRule rule_;
};

std::string names(std::span<const CustomRule::Factor> factors, std::string_view between) {
  std::string text;
  for (const auto& factor : factors)
    text += (text.empty() ? "" : std::string(between)) + factor.name;
  return text;
}

/// Where a factor stands.
bool is_in(const CustomRule& rule, std::size_t factor, std::size_t first, std::size_t last) {
  return std::any_of(rule.dims.begin() + static_cast<std::ptrdiff_t>(first),
                     rule.dims.begin() + static_cast<std::ptrdiff_t>(last),
                     [&](const auto& dims) { return std::ranges::count(dims, factor) > 0; });
}

void set_kind(CustomRule& rule, std::string_view field, const std::string& name,
              CustomRule::Kind kind) {
  const auto found = std::ranges::find(rule.factors, name, &CustomRule::Factor::name);
  if (found == rule.factors.end()) {
    fail(Errc::invalid_argument, "{}: \"{}\" is no factor of \"{}\"; it has {}", field, name,
         to_text(rule), names(rule.factors, ", "));
  }
  if (found->kind != CustomRule::Kind::pass_through && found->kind != kind) {
    fail(Errc::invalid_argument,
         "{}: \"{}\" is in reduction_factors too; a factor is either added up or held whole", field,
         name);
  }
  found->kind = kind;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> list;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) list.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return list;
}

/// What stands in the braces behind `key`, which are cut off with it.
std::vector<std::string> take_clause(std::string_view& text, std::string_view key) {
  const std::size_t begin = text.find(key);
  if (begin == std::string_view::npos || !text.ends_with('}')) return {};
  const std::string_view inside = text.substr(begin + key.size());
  text = text.substr(0, begin);
  return words(inside.substr(0, inside.size() - 1));
}

std::string clause(const CustomRule& rule, std::string_view key, CustomRule::Kind kind) {
  std::vector<CustomRule::Factor> factors;
  std::ranges::copy_if(rule.factors, std::back_inserter(factors),
                       [&](const auto& factor) { return factor.kind == kind; });
  return factors.empty() ? "" : std::string(key) + names(factors, " ") + "}";
}

}  // namespace

CustomRule make_custom_rule(std::string_view text, std::span<const std::string> need_replication,
                            std::span<const std::string> reduction) {
  using Kind = CustomRule::Kind;
  CustomRule rule = RuleReader(text).read();
  for (const std::string& name : reduction) {
    set_kind(rule, "reduction_factors", name, Kind::reduction);
  }
  for (const std::string& name : need_replication) {
    set_kind(rule, "need_replication_factors", name, Kind::need_replication);
  }
  for (std::size_t factor = 0; factor < rule.factors.size(); ++factor) {
    auto& [name, kind] = rule.factors[factor];
    const bool in_operands = is_in(rule, factor, 0, rule.num_operands());
    const bool in_result = is_in(rule, factor, rule.num_operands(), rule.dims.size());
    if (kind == Kind::reduction && in_result) {
      fail(Errc::invalid_argument,
           "reduction_factors: \"{}\" is a dim of the result of \"{}\", so its parts aren't added "
           "up; name factors that only operands have",
           name, text);
    }
    if (kind == Kind::pass_through && !(in_operands && in_result)) kind = Kind::need_replication;
  }
  return rule;
}

std::string to_text(const CustomRule& rule) {
  std::string text;
  for (std::size_t tensor = 0; tensor < rule.dims.size(); ++tensor) {
    if (tensor > 0) text += tensor == rule.num_operands() ? " ->" : ",";
    for (const std::size_t factor : rule.dims[tensor]) {
      text += (text.empty() ? "" : " ") + rule.factors[factor].name;
    }
  }
  return text + clause(rule, kReduction, CustomRule::Kind::reduction) +
         clause(rule, kNeedReplication, CustomRule::Kind::need_replication);
}

CustomRule parse_custom_rule(std::string_view text) {
  const auto need_replication = take_clause(text, kNeedReplication);
  const auto reduction = take_clause(text, kReduction);
  return make_custom_rule(text, need_replication, reduction);
}

std::vector<std::int64_t> factor_sizes(const CustomRule& rule,
                                       std::span<const TensorType> operands) {
  const auto refuse = [&](const std::string& what) {
    fail(Errc::invalid_argument, "sharding_rule \"{}\": {}", to_text(rule), what);
  };
  if (operands.size() != rule.num_operands()) {
    refuse(
        fmt::format("is for {} operands, but {} are given; write the dims of each, with a comma "
                    "between",
                    rule.num_operands(), operands.size()));
  }
  std::vector<std::int64_t> sizes(rule.factors.size(), -1);
  std::vector<std::size_t> from(sizes.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Shape& shape = operands[i].shape;
    if (shape.size() != static_cast<int>(rule.dims[i].size())) {
      refuse(
          fmt::format("operand {} is {}, but the rule names {} dims of it; write a name for each",
                      i, operands[i].to_string(), rule.dims[i].size()));
    }
    for (int dim = 0; dim < shape.size(); ++dim) {
      const std::size_t factor = rule.dims[i][static_cast<std::size_t>(dim)];
      if (sizes[factor] >= 0 && sizes[factor] != shape[dim]) {
        refuse(fmt::format(
            "factor {} is {} in operand {} {} and {} in operand {} {}; where they "
            "may differ, give them two names",
            rule.factors[factor].name, sizes[factor], from[factor],
            operands[from[factor]].to_string(), shape[dim], i, operands[i].to_string()));
      }
      sizes[factor] = shape[dim];
      from[factor] = i;
    }
  }
  return sizes;
}

void check_custom_result(const CustomRule& rule, std::span<const std::int64_t> sizes,
                         const TensorType& result) {
  const std::vector<std::size_t>& dims = rule.dims.back();
  const auto refuse = [&](const std::string& what) {
    fail(Errc::invalid_argument, "the result {} doesn't fit sharding_rule \"{}\": {}",
         result.to_string(), to_text(rule), what);
  };
  if (result.shape.size() != static_cast<int>(dims.size())) {
    refuse(fmt::format("the rule names {} dims of it; write a name for each", dims.size()));
  }
  for (int dim = 0; dim < result.shape.size(); ++dim) {
    const std::size_t factor = dims[static_cast<std::size_t>(dim)];
    if (sizes[factor] >= 0 && sizes[factor] != result.shape[dim]) {
      refuse(
          fmt::format("factor {} is {} in the operands; give dim {} that size, or a name of its "
                      "own",
                      rule.factors[factor].name, sizes[factor], dim));
    }
  }
  const bool is_sum = std::ranges::any_of(
      rule.factors, [](const auto& factor) { return factor.kind == CustomRule::Kind::reduction; });
  if (is_sum && result.dtype == DType::pred) {
    refuse("parts of type pred can't be added up; leave reduction_factors empty");
  }
}

}  // namespace weft
