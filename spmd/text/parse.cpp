#include <algorithm>
#include <map>
#include <optional>
#include <type_traits>

#include "spmd/ops/row.hpp"
#include "spmd/ops/verify.hpp"
#include "spmd/text/element_text.hpp"
#include "spmd/text/sharding_reader.hpp"
#include "spmd/text/text.hpp"
#include "spmd/text/text_reader.hpp"

namespace weft {
namespace {

std::int64_t packed(AtomList atoms) { return static_cast<std::int64_t>(atoms.bits()); }

/// A recursive descent parser with one function per symbol of the grammar (text.hpp). It expects
/// attributes in the order in which to_text writes them.
class Parser {
 public:
  Parser(std::string_view text, const Mesh& mesh) : reader_(text), mesh_(mesh) {}

  Program parse() {
    reader_.expect("program");
    reader_.expect("(");
    if (!reader_.accept(")")) {
      do input();
      while (reader_.accept(","));
      reader_.expect(")");
    }
    reader_.expect("{");
    while (!reader_.accept("return")) op();
    if (!reader_.accept("}")) {
      do output();
      while (reader_.accept(","));
      reader_.expect("}");
    }
    if (!reader_.at_end()) reader_.fail_at(reader_.place(), "text follows the program");
    number_values();
    try {
      verify(program_, mesh_);
    } catch (const Error& error) {
      fail(Errc::invalid_argument, "program text: {}", error.what());
    }
    return std::move(program_);
  }

 private:
  struct Definition {
    TensorType type;
    OpId op = kNoId;
  };

  void input() {
    ProgramInput input;
    const std::size_t place = reader_.place();
    input.value = value_id();
    reader_.expect(":");
    const TensorType type = tensor_type();
    input.kind = reader_.enumerator(InputKind::buffer, "input kind");
    input.name = reader_.string();
    input.sharding = read_sharding(reader_, mesh_, type.shape.size());
    define(place, input.value, {type, kNoId});
    program_.inputs.push_back(std::move(input));
  }

  void output() {
    ProgramOutput output;
    const std::size_t place = reader_.place();
    output.value = value_id();
    output.name = reader_.string();
    output.sharding =
        read_sharding(reader_, mesh_, definition(place, output.value).type.shape.size());
    if (reader_.accept("updates")) output.updates = reader_.small_integer();
    program_.outputs.push_back(std::move(output));
  }

  void op() {
    const std::size_t place = reader_.place();
    const ValueId result = value_id();
    reader_.expect("=");
    const std::size_t kind_place = reader_.place();
    const OpKind kind = at(kind_place, [&] { return parse_op_kind(reader_.word()); });
    std::vector<TensorType> operand_types;
    while (reader_.accept(operand_types.empty() ? "%" : ",")) {
      if (!operand_types.empty()) reader_.expect("%");
      const std::size_t operand_place = reader_.place();
      program_.operands.push_back(id());
      operand_types.push_back(definition(operand_place, program_.operands.back()).type);
    }

    std::vector<std::string_view> elements;
    std::vector<std::int64_t> attrs;
    const std::size_t attrs_place = reader_.place();
    if (reader_.accept("{")) {
      attrs = attributes(kind, operand_types, elements);
      reader_.expect("}");
    } else if (std::ranges::all_of(*row(kind).attrs, &Attr::optional)) {
      attrs = left_out(kind);
    }
    reader_.expect(":");
    const TensorType type = tensor_type();
    if (table_of(kind) == Form::elements) {
      attrs = constant_attrs(attrs_place, elements, type.dtype);
    }
    const TensorType inferred = at(place, [&] {
      return infer_type({kind, operand_types, attrs, type, &mesh_});
    });
    if (inferred != type) {
      reader_.fail_at(place, "{} gives {}, not {}", to_string(kind), inferred.to_string(),
                      type.to_string());
    }
    define(place, result, {type, program_.num_ops()});
    program_.op_kinds.push_back(kind);
    program_.operand_begin.push_back(static_cast<std::uint32_t>(program_.operands.size()));
    program_.results.push_back(result);
    program_.attrs.insert(program_.attrs.end(), attrs.begin(), attrs.end());
    program_.attr_begin.push_back(static_cast<std::uint32_t>(program_.attrs.size()));
    program_.op_locs.push_back(program_.intern_loc(reader_.line_comment()));
  }

  /// Reads the attributes that the op's row lists. Elements (Form::elements) remain text, because
  /// their dtype comes later in the line.
  std::vector<std::int64_t> attributes(OpKind kind, std::span<const TensorType> operands,
                                       std::vector<std::string_view>& elements) {
    const Attrs& attrs = *row(kind).attrs;
    if (attrs.empty()) reader_.fail_at(reader_.place(), "{} has no attributes", to_string(kind));
    AttrValues values;
    for (const Attr& attr : attrs) {
      if (!begins(attr, values)) {
        if (attr.form == Form::pairs) values.lengths.push_back(0);
        if (!attr.is_list) values.words.push_back(0);
      } else if (attr.form == Form::elements) {
        constant_elements(elements);
      } else {
        value(attr, operands, values);
      }
    }
    values.words.insert(values.words.begin(), values.lengths.begin(), values.lengths.end());
    return std::move(values.words);
  }

  /// Returns the attribute words of an op whose text has no attributes.
  static std::vector<std::int64_t> left_out(OpKind kind) {
    const auto words = std::ranges::count(*row(kind).attrs, false, &Attr::is_list);
    return std::vector<std::int64_t>(static_cast<std::size_t>(words), 0);
  }

  struct AttrValues {
    std::vector<std::int64_t> lengths{};  ///< lengths of the lists of Form::pairs
    std::vector<std::int64_t> words{};
    std::optional<std::size_t> n{};  ///< Attr's `n`, which the first list determines
    bool is_first = true;
    std::size_t place = 0;  ///< position of the last attribute's name
  };

  /// Reads the attribute's name and "=". Returns false if the text omits the attribute.
  bool begins(const Attr& attr, AttrValues& values) {
    if (attr.form == Form::elements) return true;  // constant_elements() reads "value" or "values"
    values.place = reader_.place();
    if (values.is_first) {
      if (attr.optional && !reader_.accept(attr.name)) return false;
      if (!attr.optional) reader_.expect(attr.name);
    } else {
      if (attr.optional && !reader_.accept(",")) return false;
      if (!attr.optional) reader_.expect(",");
      values.place = reader_.place();
      reader_.expect(attr.name);
    }
    reader_.expect("=");
    values.is_first = false;
    return true;
  }

  void value(const Attr& attr, std::span<const TensorType> operands, AttrValues& values) {
    std::vector<std::int64_t>& words = values.words;
    switch (attr.form) {
      case Form::number: words.push_back(reader_.f64_bits()); return;
      case Form::reduce_kind: words.push_back(enumerator(ReduceKind::min, "reduce kind")); return;
      case Form::direction: words.push_back(enumerator(CompareDirection::ge, "direction")); return;
      case Form::pairs: values.lengths.push_back(dim_pairs(words)); return;
      case Form::constraint:
        words.push_back(static_cast<std::int64_t>(program_.constraints.size()));
        program_.constraints.push_back(
            read_sharding(reader_, mesh_, operands.empty() ? 0 : operands[0].shape.size()));
        return;
      case Form::target: words.push_back(custom_target()); return;
      case Form::atoms:
        if (!attr.is_list) return words.push_back(packed(read_atoms(reader_, mesh_)));
        break;
      default:
        if (!attr.is_list) return words.push_back(reader_.integer());
    }
    const auto list = attr.form == Form::atoms ? atoms_per_dim() : integers();
    if (attr.per > 0) {
      if (list.size() < attr.base) {
        reader_.fail_at(values.place, "{} has {} entries; expected {} or more", attr.name,
                        list.size(), attr.base);
      }
      if (!values.n) values.n = list.size() - attr.base;
      if (list.size() != *values.n + attr.base) {
        reader_.fail_at(values.place, "the lists differ in length");
      }
    }
    append(words, list);
  }

  template <typename Enum>
  std::int64_t enumerator(Enum last, std::string_view what) {
    return static_cast<std::int64_t>(reader_.enumerator(last, what));
  }

  /// Reads the name and the rule that follow "target =".
  std::int64_t custom_target() {
    CustomTarget target{reader_.string(), ""};
    reader_.expect(",");
    name("rule");
    target.rule = reader_.string();
    return program_.intern_target(target);
  }

  /// Reads two lists such as `[0] x [1]`, appends both to `attrs`, and returns their common length.
  std::int64_t dim_pairs(std::vector<std::int64_t>& attrs) {
    const std::size_t place = reader_.place();
    const std::vector<std::int64_t> lhs = integers();
    reader_.expect("x");
    const std::vector<std::int64_t> rhs = integers();
    if (lhs.size() != rhs.size()) reader_.fail_at(place, "the two lists differ in length");
    append(attrs, lhs);
    append(attrs, rhs);
    return static_cast<std::int64_t>(lhs.size());
  }

  /// Keeps the elements as text, because the dtype comes later in the line.
  void constant_elements(std::vector<std::string_view>& elements) {
    if (reader_.accept("value")) {
      reader_.expect("=");
      return elements.push_back(reader_.number());
    }
    name("values");
    list([&] { elements.push_back(reader_.number()); });
  }

  std::vector<std::int64_t> constant_attrs(std::size_t place,
                                           std::span<const std::string_view> elements,
                                           DType dtype) {
    std::vector<std::byte>& pool = program_.const_pool;
    pool.resize((pool.size() + 7) / 8 * 8);
    const std::size_t offset = pool.size();
    for (const std::string_view element : elements) {
      if (!append_element(dtype, element, pool)) {
        reader_.fail_at(place, "'{}' isn't a value of dtype {}", element, to_string(dtype));
      }
    }
    return {static_cast<std::int64_t>(offset), static_cast<std::int64_t>(pool.size() - offset)};
  }

  std::vector<std::int64_t> atoms_per_dim() {
    std::vector<std::int64_t> all;
    list([&] { all.push_back(packed(read_atoms(reader_, mesh_))); });
    return all;
  }

  // Functions that read fields and words follow.

  void name(std::string_view name) {
    reader_.expect(name);
    reader_.expect("=");
  }

  TensorType tensor_type() {
    const std::size_t place = reader_.place();
    const DType dtype = at(place, [&] { return parse_dtype(reader_.word()); });
    return {dtype, at(place, [&] { return Shape(std::span<const std::int64_t>(integers())); })};
  }

  std::vector<std::int64_t> integers() {
    std::vector<std::int64_t> all;
    list([&] { all.push_back(reader_.integer()); });
    return all;
  }

  template <typename Read>
  void list(Read read) {
    reader_.expect("[");
    if (reader_.accept("]")) return;
    do read();
    while (reader_.accept(","));
    reader_.expect("]");
  }

  // Functions that read values follow.

  ValueId value_id() {
    reader_.expect("%");
    return id();
  }

  ValueId id() {
    const std::size_t place = reader_.place();
    const std::int64_t value = reader_.integer();
    if (value < 0 || value >= kNoId) reader_.fail_at(place, "%{} isn't a value", value);
    return static_cast<ValueId>(value);
  }

  const Definition& definition(std::size_t place, ValueId value) const {
    const auto found = values_.find(value);
    if (found == values_.end()) reader_.fail_at(place, "%{} isn't defined before its use", value);
    return found->second;
  }

  void define(std::size_t place, ValueId value, Definition definition) {
    if (!values_.emplace(value, definition).second) {
      reader_.fail_at(place, "%{} is already defined", value);
    }
  }

  void number_values() {
    for (const auto& [value, definition] : values_) {
      if (value != program_.num_values()) {
        fail(Errc::invalid_argument,
             "program text: %{} isn't defined; values are numbered from 0 without gaps",
             program_.num_values());
      }
      program_.value_types.push_back(definition.type);
      program_.value_ops.push_back(definition.op);
    }
  }

  /// Calls `what`. If it throws an Error, adds the place in the text to the message.
  template <typename What>
  std::invoke_result_t<What> at(std::size_t place, What what) {
    try {
      return what();
    } catch (const Error& error) {
      reader_.fail_at(place, "{}", error.what());
    }
  }

  static void append(std::vector<std::int64_t>& to, const std::vector<std::int64_t>& from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  TextReader reader_;
  const Mesh& mesh_;
  Program program_;
  std::map<ValueId, Definition> values_;  // ordered by id, like the arrays
};

}  // namespace

Program parse_program(std::string_view text, const Mesh& mesh) {
  return Parser(text, mesh).parse();
}

}  // namespace weft
