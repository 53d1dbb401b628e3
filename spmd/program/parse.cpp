#include <map>
#include <type_traits>

#include <weft/spmd/program/element_text.hpp>
#include <weft/spmd/program/infer.hpp>
#include <weft/spmd/program/sharding_reader.hpp>
#include <weft/spmd/program/text.hpp>
#include <weft/spmd/program/text_reader.hpp>
#include <weft/spmd/program/verify.hpp>

namespace weft {
namespace {

std::int64_t packed(AtomList atoms) { return static_cast<std::int64_t>(atoms.bits()); }

/// Recursive descent, a function per noun of the grammar (text.hpp), attributes in to_text's order.
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
    input.kind = reader_.enumerator(InputKind::runtime_scalar, "input kind");
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
      attrs =
          kind == OpKind::constant ? constant_elements(elements) : attributes(kind, operand_types);
      reader_.expect("}");
    }
    reader_.expect(":");
    const TensorType type = tensor_type();
    if (kind == OpKind::constant) attrs = constant_attrs(attrs_place, elements, type.dtype);
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

  std::vector<std::int64_t> attributes(OpKind kind, std::span<const TensorType> operands) {
    switch (kind) {
      case OpKind::iota: {
        const std::int64_t dim = field("dim");
        return {dim, reader_.accept(",") ? atoms_field() : 0};
      }
      case OpKind::compare:
        name("direction");
        return {static_cast<std::int64_t>(reader_.enumerator(CompareDirection::ge, "direction"))};
      case OpKind::transpose: name("perm"); return integers();
      case OpKind::broadcast_in_dim:
      case OpKind::reverse: name("dims"); return integers();
      case OpKind::rng_bit_generator: name("atoms"); return atoms_per_dim();
      case OpKind::check_index: name("limit_ignored"); return integers();
      case OpKind::gather: return {atoms_field()};
      case OpKind::scatter: {
        const std::int64_t rows = field("rows");
        reader_.expect(",");
        return {rows, atoms_field()};
      }
      case OpKind::dynamic_slice: name("sizes"); return integers();
      case OpKind::slice: return lists({"start", "limit", "stride"});
      case OpKind::pad: return lists({"low", "high", "interior"});
      case OpKind::concatenate: return {field("dim")};
      case OpKind::dot_general: return dot_attributes();
      case OpKind::reduce: return kind_and_lists({"dims"});
      case OpKind::convolution: {
        std::vector<std::int64_t> attrs = lists({"lhs", "rhs", "result"});
        reader_.expect(",");
        append(attrs, lists({"stride", "low", "high", "lhs_dilation", "rhs_dilation"}));
        reader_.expect(",");
        attrs.push_back(field("reversed"));
        if (reader_.accept(",")) append(attrs, lists({"group"}));
        return attrs;
      }
      case OpKind::reduce_window:
      case OpKind::select_and_scatter:
        return kind_and_lists({"size", "stride", "low", "high", "base_dilation", "dilation"});
      case OpKind::sharding_constraint:
        name("sharding");
        program_.constraints.push_back(
            read_sharding(reader_, mesh_, operands.empty() ? 0 : operands[0].shape.size()));
        return {static_cast<std::int64_t>(program_.constraints.size()) - 1};
      case OpKind::custom_call: return {custom_target()};
      case OpKind::collective_permute: {
        name("from");
        std::vector<std::int64_t> attrs = atoms_per_dim();
        reader_.expect(",");
        name("to");
        append(attrs, atoms_per_dim());
        return attrs;
      }
      case OpKind::normalize:
      case OpKind::normalize_grad: return flag_and_number("center", "eps");
      case OpKind::attention:
      case OpKind::attention_grad: return flag_and_number("causal", "scale");
      default: return collective_attributes(kind);
    }
  }

  std::vector<std::int64_t> flag_and_number(std::string_view flag, std::string_view number) {
    std::vector<std::int64_t> attrs{field(flag)};
    reader_.expect(",");
    name(number);
    attrs.push_back(reader_.f64_bits());
    if (reader_.accept(",")) attrs.push_back(atoms_field());
    return attrs;
  }

  std::int64_t custom_target() {
    name("target");
    CustomTarget target{reader_.string(), ""};
    reader_.expect(",");
    name("rule");
    target.rule = reader_.string();
    return program_.intern_target(target);
  }

  std::vector<std::int64_t> kind_and_lists(std::initializer_list<std::string_view> names) {
    std::vector<std::int64_t> attrs{kind_field()};
    reader_.expect(",");
    append(attrs, lists(names));
    return attrs;
  }

  /// Of equal length.
  std::vector<std::int64_t> lists(std::initializer_list<std::string_view> names) {
    std::vector<std::int64_t> attrs;
    std::size_t length = 0;
    for (const std::string_view& each : names) {
      const bool is_first = &each == names.begin();
      if (!is_first) reader_.expect(",");
      const std::size_t place = reader_.place();
      name(each);
      const std::vector<std::int64_t> words = integers();
      if (is_first) length = words.size();
      if (words.size() != length) reader_.fail_at(place, "the lists differ in length");
      append(attrs, words);
    }
    return attrs;
  }

  std::vector<std::int64_t> dot_attributes() {
    std::vector<std::int64_t> attrs{0, 0};
    if (reader_.accept("batch")) {
      reader_.expect("=");
      attrs[0] = dim_pairs(attrs);
      reader_.expect(",");
    }
    name("contracting");
    attrs[1] = dim_pairs(attrs);
    return attrs;
  }

  /// `[0] x [1]`: appends both lists, which are equally long; gives the length.
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

  std::vector<std::int64_t> collective_attributes(OpKind kind) {
    if (!is_collective(kind) && kind != OpKind::all_slice) {
      reader_.fail_at(reader_.place(), "{} has no attributes", to_string(kind));
    }
    std::vector<std::int64_t> attrs{atoms_field()};
    reader_.expect(",");
    const auto both = [&](std::int64_t first, std::string_view second) {
      reader_.expect(",");
      attrs.insert(attrs.end(), {first, field(second)});
    };
    switch (kind) {
      case OpKind::all_reduce: attrs.push_back(kind_field()); break;
      case OpKind::reduce_scatter: both(kind_field(), "dim"); break;
      case OpKind::all_to_all: both(field("split"), "concat"); break;
      default: attrs.push_back(field("dim"));
    }
    return attrs;
  }

  /// Leaves the elements as text: the dtype comes later in the line.
  std::vector<std::int64_t> constant_elements(std::vector<std::string_view>& elements) {
    if (reader_.accept("value")) {
      reader_.expect("=");
      elements.push_back(reader_.number());
      return {};
    }
    name("values");
    list([&] { elements.push_back(reader_.number()); });
    return {};
  }

  std::vector<std::int64_t> constant_attrs(std::size_t place,
                                           std::span<const std::string_view> elements,
                                           DType dtype) {
    std::vector<std::byte>& pool = program_.const_pool;
    pool.resize((pool.size() + 7) / 8 * 8);
    const std::size_t offset = pool.size();
    for (const std::string_view element : elements) {
      if (!append_element(dtype, element, pool)) {
        reader_.fail_at(place, "'{}' is no value of dtype {}", element, to_string(dtype));
      }
    }
    return {static_cast<std::int64_t>(offset), static_cast<std::int64_t>(pool.size() - offset)};
  }

  std::vector<std::int64_t> atoms_per_dim() {
    std::vector<std::int64_t> all;
    list([&] { all.push_back(packed(read_atoms(reader_, mesh_))); });
    return all;
  }

  // Fields and words.

  void name(std::string_view name) {
    reader_.expect(name);
    reader_.expect("=");
  }

  std::int64_t field(std::string_view field_name) {
    name(field_name);
    return reader_.integer();
  }

  std::int64_t atoms_field() {
    name("atoms");
    return packed(read_atoms(reader_, mesh_));
  }

  std::int64_t kind_field() {
    name("kind");
    return static_cast<std::int64_t>(reader_.enumerator(ReduceKind::min, "reduce kind"));
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

  // Values.

  ValueId value_id() {
    reader_.expect("%");
    return id();
  }

  ValueId id() {
    const std::size_t place = reader_.place();
    const std::int64_t value = reader_.integer();
    if (value < 0 || value >= kNoId) reader_.fail_at(place, "%{} is no value", value);
    return static_cast<ValueId>(value);
  }

  const Definition& definition(std::size_t place, ValueId value) const {
    const auto found = values_.find(value);
    if (found == values_.end()) reader_.fail_at(place, "%{} isn't defined before", value);
    return found->second;
  }

  void define(std::size_t place, ValueId value, Definition definition) {
    if (!values_.emplace(value, definition).second) {
      reader_.fail_at(place, "%{} is defined already", value);
    }
  }

  void number_values() {
    for (const auto& [value, definition] : values_) {
      if (value != program_.num_values()) {
        fail(Errc::invalid_argument, "program text: %{} is defined nowhere; values count from 0 up",
             program_.num_values());
      }
      program_.value_types.push_back(definition.type);
      program_.value_ops.push_back(definition.op);
    }
  }

  /// Gives errors of `what` the place.
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
  std::map<ValueId, Definition> values_;  // ordered, to become the arrays
};

}  // namespace

Program parse_program(std::string_view text, const Mesh& mesh) {
  return Parser(text, mesh).parse();
}

}  // namespace weft
