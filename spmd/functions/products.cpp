#include <weft/ops/products.hpp>

#include <algorithm>
#include <string>
#include <tuple>

#include <weft/ops/elementwise.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

/// One letter for each dim of a tensor. Letters from kEllipsis on stand for dims of "...".
using Letters = std::string;
constexpr char kEllipsis = '\x01';

bool has(const Letters& letters, char letter) { return letters.find(letter) != letters.npos; }

struct Term {
  Tensor tensor;
  Letters letters;
};

std::int64_t size_of(const Term& term, char letter) {
  return term.tensor.shape()[static_cast<int>(term.letters.find(letter))];
}

/// Returns the term with its dims in the order of `letters`, a permutation of the term's letters.
Tensor arranged(const Term& term, const Letters& letters) {
  if (term.letters == letters) return term.tensor;
  std::vector<int> perm;
  for (const char letter : letters) perm.push_back(static_cast<int>(term.letters.find(letter)));
  return permute(term.tensor, perm);
}

/// Drops dims that are broadcast, because they have size 1 in this term and a larger size in the
/// other term.
Term without_ones(const Term& term, const Term& other) {
  Term result = term;
  for (const char letter : term.letters) {
    if (!has(other.letters, letter) || size_of(term, letter) != 1) continue;
    if (size_of(other, letter) == 1) continue;
    result.tensor = squeeze(result.tensor, static_cast<int>(result.letters.find(letter)));
    std::erase(result.letters, letter);
  }
  return result;
}

/// Sums the term over the dims whose letters aren't in `kept`.
Term summed(const Term& term, const Letters& kept) {
  std::vector<int> dims;
  Letters letters;
  for (std::size_t i = 0; i < term.letters.size(); ++i) {
    if (has(kept, term.letters[i])) {
      letters += term.letters[i];
    } else {
      dims.push_back(static_cast<int>(i));
    }
  }
  return dims.empty() ? term : Term{sum(term.tensor, dims), letters};
}

/// Returns the product of two terms, summed over the letters that aren't in `kept`. The result
/// first has the batch letters, then the other letters of `a`, then those of `b`.
Term product(Call& call, Term a, Term b, const Letters& kept) {
  std::tie(a, b) = std::pair(without_ones(a, b), without_ones(b, a));
  a = summed(a, kept + b.letters);
  b = summed(b, kept + a.letters);
  Builder::DotDims dims;
  Letters batch;
  Letters free;
  for (std::size_t i = 0; i < a.letters.size(); ++i) {
    const char letter = a.letters[i];
    const auto in_b = b.letters.find(letter);
    if (in_b == b.letters.npos) {
      free += letter;
      continue;
    }
    const bool is_batch = has(kept, letter);
    if (is_batch) batch += letter;
    (is_batch ? dims.lhs_batch : dims.lhs_contracting).push_back(static_cast<std::int64_t>(i));
    (is_batch ? dims.rhs_batch : dims.rhs_contracting).push_back(static_cast<std::int64_t>(in_b));
  }
  for (const char letter : b.letters) {
    if (!has(a.letters, letter)) free += letter;
  }
  const ValueId lhs = call.value(a.tensor);
  return {call.result(call->dot_general(lhs, call.value(b.tensor), dims)), batch + free};
}

// The following functions implement matmul.

struct Matrix {
  Term term;
  bool is_vector = false;
};

/// Gives each dim of x a letter. `rows` and `columns` are the letters of the last two dims.
Matrix matrix(Call& call, const Operand& x, char rows, char columns, bool is_left) {
  const Shape& shape = call.type(x).shape;
  if (shape.size() == 0)
    call.refuse("{} is a scalar; use * to multiply by a scalar", call.node(x)->label());
  if (shape.size() == 1) return {{x.tensor(), Letters(1, is_left ? columns : rows)}, true};
  Letters letters;
  const int batch = shape.size() - 2;
  // Batch dims are counted from the last one, because broadcasting aligns last dims.
  for (int i = batch; i > 0; --i) letters += static_cast<char>(kEllipsis + i - 1);
  return {{x.tensor(), letters + rows + columns}};
}

/// Returns the letters of batch dims that occur in `a` or in `b`, from the outermost dim to the
/// innermost.
Letters batch_letters(const Letters& a, const Letters& b) {
  Letters letters;
  for (char letter = kEllipsis + kDimCountMax; letter >= kEllipsis; --letter) {
    if (has(a, letter) || has(b, letter)) letters += letter;
  }
  return letters;
}

bool matmul_fits(const Term& a, const Term& b) {
  return std::ranges::all_of(a.letters, [&](char letter) {
    if (!has(b.letters, letter)) return true;
    const std::int64_t left = size_of(a, letter);
    const std::int64_t right = size_of(b, letter);
    return left == right || (letter != 'k' && (left == 1 || right == 1));
  });
}

// The following functions implement einsum.

/// The letters of each operand and of the result of an equation such as "ij,jk->ik".
struct Equation {
  std::vector<Letters> operands;
  Letters result;
};

/// Returns the letters of one term of the equation, in which a letter for each of `ellipsis_dims`
/// dims replaces "...".
Letters letters_of(const Call& call, std::string_view text, int ellipsis_dims) {
  Letters letters;
  bool has_ellipsis = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (text.substr(i, 3) == "..." && !has_ellipsis) {
      for (int dim = ellipsis_dims; dim > 0; --dim) {
        letters += static_cast<char>(kEllipsis + dim - 1);
      }
      has_ellipsis = true;
      i += 2;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      letters += c;
    } else {
      call.refuse("'{}' in \"{}\": expected letters, and \"...\" at most once", c, text);
    }
  }
  return letters;
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const auto end = text.find(',', begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == text.npos) return parts;
    begin = end + 1;
  }
}

/// Returns the number of dims for which "..." stands in an operand's text; -1 if the text has no
/// "...".
int ellipsis_dims(std::string_view text, int num_dims) {
  if (text.find("...") == text.npos) return -1;
  const auto letters = std::ranges::count_if(text, [](char c) { return c != '.' && c != ' '; });
  return num_dims - static_cast<int>(letters);
}

/// Returns the letters that occur exactly once in all operands together, sorted. Letters of "..."
/// come first.
Letters implied_result(const std::vector<Letters>& operands) {
  Letters all;
  for (const Letters& letters : operands) all += letters;
  Letters result;
  for (const char letter : all) {
    const bool is_ellipsis = letter < ' ';
    if (!is_ellipsis && std::ranges::count(all, letter) == 1) result += letter;
  }
  std::ranges::sort(result);
  return batch_letters(all, "") + result;
}

Equation parsed(const Call& call, std::string_view text, const std::vector<Tensor>& operands,
                const std::source_location& loc) {
  const auto arrow = text.find("->");
  const auto parts = split_at_commas(text.substr(0, arrow));
  if (parts.size() != operands.size()) {
    call.refuse("\"{}\" describes {} operands, but {} are given", text, parts.size(),
                operands.size());
  }
  Equation equation;
  int most = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const TensorType& type = call.type(Operand(operands[i], loc));
    const int dims = ellipsis_dims(parts[i], type.shape.size());
    equation.operands.push_back(letters_of(call, parts[i], std::max(dims, 0)));
    if (static_cast<int>(equation.operands.back().size()) != type.shape.size()) {
      call.refuse("\"{}\" must have one letter for each dim of {}", parts[i],
                  call.node(Operand(operands[i], loc))->label());
    }
    most = std::max(most, dims);
  }
  if (arrow == text.npos) {
    equation.result = implied_result(equation.operands);
    return equation;
  }
  const std::string_view result = text.substr(arrow + 2);
  equation.result = letters_of(call, result, most);
  Letters all;
  for (const Letters& letters : equation.operands) all += letters;
  for (const char letter : equation.result) {
    if (has(all, letter) && std::ranges::count(equation.result, letter) == 1) continue;
    call.refuse("the result \"{}\" of \"{}\": expected letters of the operands, each once", result,
                text);
  }
  return equation;
}

/// Replaces dims that have the same letter by their diagonal.
Term without_repeats(const Call& call, Term term) {
  for (std::size_t i = 0; i < term.letters.size(); ++i) {
    const auto again = term.letters.find(term.letters[i], i + 1);
    if (again == Letters::npos) continue;
    const Shape& shape = term.tensor.shape();
    const int first = static_cast<int>(i);
    const int second = static_cast<int>(again);
    if (shape[first] != shape[second]) {
      call.refuse("'{}' has sizes {} and {} in one operand", term.letters[i], shape[first],
                  shape[second]);
    }
    const Tensor on_diagonal = equal(iota(shape, first), iota(shape, second));
    term.tensor = sum(where(on_diagonal, term.tensor, 0.0), {second});
    term.letters.erase(again, 1);
    --i;
  }
  return term;
}

void expect_sizes(const Call& call, const Term& a, const Term& b) {
  for (const char letter : a.letters) {
    if (!has(b.letters, letter)) continue;
    const std::int64_t left = size_of(a, letter);
    const std::int64_t right = size_of(b, letter);
    if (left == right || left == 1 || right == 1) continue;
    call.refuse("{} has size {} in one operand and {} in another",
                letter < ' ' ? "a dim of \"...\"" : fmt::format("'{}'", letter), left, right);
  }
}

}  // namespace

Tensor matmul(Operand a, Operand b) {
  Call call("matmul", a.loc());
  if (call.lowers(a, b)) return matmul(call.lowered(a), call.lowered(b));
  const Matrix left = matrix(call, a, 'm', 'k', true);
  const Matrix right = matrix(call, b, 'k', 'n', false);
  if (call.type(a).dtype != call.type(b).dtype || !matmul_fits(left.term, right.term)) {
    call.refuse(
        "{} and {} don't fit; expected [..,m,k] and [..,k,n] of one dtype, with leading dims that "
        "broadcast",
        call.type(a).to_string(), call.type(b).to_string());
  }
  Letters result = batch_letters(left.term.letters, right.term.letters);
  if (!left.is_vector) result += 'm';
  if (!right.is_vector) result += 'n';
  return arranged(product(call, left.term, right.term, result), result);
}

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands,
              std::source_location loc) {
  Call call("einsum", loc);
  if (operands.empty()) call.refuse("needs at least one operand");
  const Equation parts = parsed(call, equation, operands, loc);
  std::vector<Term> terms;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Operand operand(operands[i], loc);
    const bool lowers = operands.size() > 1 && call.lowers(operand);
    terms.push_back(
        without_repeats(call, {lowers ? call.lowered(operand) : operands[i], parts.operands[i]}));
  }
  Term total = terms.front();
  for (std::size_t i = 1; i < terms.size(); ++i) {
    expect_sizes(call, total, terms[i]);
    Letters kept = parts.result;
    for (std::size_t later = i + 1; later < terms.size(); ++later) kept += terms[later].letters;
    total = product(call, total, terms[i], kept);
  }
  return call.result(call.value(arranged(summed(total, parts.result), parts.result)));
}

}  // namespace weft
