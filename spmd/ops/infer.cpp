#include "spmd/ops/infer.hpp"

#include "spmd/ops/row.hpp"

namespace weft {
namespace {

using namespace infer;

void check_operands(const OpSignature& op, const OperandCount& count) {
  const std::size_t given = op.operands.size();
  if (given >= count.least && given <= count.most) return;
  if (count.least == count.most) reject(op, "has {} operands; it takes {}", given, count.least);
  reject(op, "has {} operands; it takes {} to {}", given, count.least, count.most);
}

/// Returns the names of the attributes, such as "kind, dims", for a message.
std::string names(const Attrs& attrs) {
  std::string text;
  for (const Attr& attr : attrs) text += fmt::format("{}{}", text.empty() ? "" : ", ", attr.name);
  return text;
}

void check_range(const OpSignature& op, const Attr& attr, std::int64_t word) {
  if (attr.form == Form::flag && (word < 0 || word > 1)) {
    reject(op, "{} is {}; expected 0 or 1", attr.name, word);
  }
  const auto last_kind = static_cast<std::int64_t>(ReduceKind::min);
  if (attr.form == Form::reduce_kind && (word < 0 || word > last_kind)) {
    reject(op, "{} isn't a ReduceKind", word);
  }
  const auto last_direction = static_cast<std::int64_t>(CompareDirection::ge);
  if (attr.form == Form::direction && (word < 0 || word > last_direction)) {
    reject(op, "{} isn't a CompareDirection", word);
  }
}

[[noreturn]] void refuse_count(const OpSignature& op, const Attrs& attrs) {
  std::size_t fixed = 0;
  for (const Attr& attr : attrs) {
    if (attr.per > 0 || attr.form == Form::pairs) {
      reject(op, "has {} attribute words [{}], which don't fit the attributes {}", op.attrs.size(),
             fmt::join(op.attrs, ","), names(attrs));
    }
    fixed += attr.base;
  }
  reject(op, "has {} attribute words; it takes {}", op.attrs.size(), fixed);
}

void check_attrs(const OpSignature& op, const Attrs& attrs) {
  if (!fits(attrs, op.attrs)) refuse_count(op, attrs);
  if (!attrs.has_ranges) return;
  const auto parts = split_words(attrs, op.attrs);
  for (std::size_t i = 0; i < attrs.size(); ++i) {
    if (!attrs[i].is_list) check_range(op, attrs[i], (*parts)[i][0]);
  }
}

}  // namespace

TensorType infer_type(const OpSignature& op) {
  const OpRow* found = find_row(op.kind);
  if (found == nullptr) {
    fail(Errc::invalid_argument, "{} isn't an OpKind", static_cast<int>(op.kind));
  }
  check_operands(op, *found->operands);
  check_attrs(op, *found->attrs);
  return (*found->infer)(op);
}

TensorType infer::same(const OpSignature& op) { return op.operands[0]; }

bool is_atom_list(const Mesh& mesh, std::uint64_t bits) {
  AtomMask seen = 0;
  for (; bits != 0; bits >>= 4) {
    const auto atom = static_cast<int>(bits & 15U);
    if (atom == 0 || atom > mesh.num_atoms() || ((seen >> atom) & 1U) != 0) return false;
    seen = static_cast<AtomMask>(seen | (1U << atom));
  }
  return true;
}

}  // namespace weft
