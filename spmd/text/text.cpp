#include "spmd/text/text.hpp"

#include <fmt/ranges.h>

#include "spmd/ops/row.hpp"
#include "spmd/text/element_text.hpp"

namespace weft {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

/// Returns the text of one atom list per dim, such as `[{"data"}, {}]`.
std::string atoms_text(const Mesh& mesh, Words packed) {
  Sharding sharding;
  for (std::size_t i = 0; i < packed.size(); ++i) {
    sharding.dims[i] = AtomList::from_bits(static_cast<std::uint64_t>(packed[i]));
  }
  return sharding.to_string(mesh, static_cast<int>(packed.size()));
}

/// Returns the text of one atom list, such as `{"data"}`.
std::string atoms_text(const Mesh& mesh, std::int64_t packed) {
  const std::string text = atoms_text(mesh, Words(&packed, 1));
  return text.substr(1, text.size() - 2);
}

class Printer {
 public:
  Printer(const Program& program, const Mesh& mesh) : program_(program), mesh_(mesh) {}

  std::string print() {
    std::string text = "program(";
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      const ProgramInput& input = program_.inputs[i];
      text += fmt::format("{}%{}: {} {} {} {}", i == 0 ? "" : ",\n        ", input.value,
                          program_.type(input.value).to_string(), to_string(input.kind),
                          quoted(input.name), sharding(input.sharding, input.value));
    }
    text += ") {\n";
    for (OpId op = 0; op < program_.num_ops(); ++op) text += line(op);
    text += "  return";
    for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
      const ProgramOutput& output = program_.outputs[i];
      text += fmt::format("{} %{} {} {}", i == 0 ? "" : ",\n        ", output.value,
                          quoted(output.name), sharding(output.sharding, output.value));
      if (output.updates != -1) text += fmt::format(" updates {}", output.updates);
    }
    return text + "\n}\n";
  }

 private:
  std::string sharding(const Sharding& sharding, ValueId value) const {
    return sharding.to_string(mesh_, program_.shape(value).size());
  }

  std::string line(OpId op) const {
    const std::string attributes = attributes_text(op);
    std::string text = fmt::format("  %{} = {}", program_.result(op), to_string(program_.kind(op)));
    for (const ValueId& operand : program_.op_operands(op)) {
      const bool is_first = &operand == program_.op_operands(op).data();
      text += fmt::format("{} %{}", is_first ? "" : ",", operand);
    }
    if (!attributes.empty()) text += fmt::format(" {{{}}}", attributes);
    text += " : " + program_.type(program_.result(op)).to_string();
    if (!program_.loc(op).empty()) text += "  // " + program_.loc(op);
    return text + '\n';
  }

  std::string attributes_text(OpId op) const {
    const Attrs& attrs = *row(program_.kind(op)).attrs;
    const auto parts = split_words(attrs, program_.op_attrs(op));
    WEFT_CHECK(parts.has_value(), op);
    std::string text;
    for (std::size_t i = 0; i < attrs.size(); ++i) {
      const Words words = (*parts)[i];
      if (attrs[i].optional && (words.empty() || (!attrs[i].is_list && words[0] == 0))) continue;
      if (!text.empty()) text += ", ";
      text += attrs[i].form == Form::elements || attrs[i].form == Form::target
                  ? table_text(op, attrs[i].form)
                  : fmt::format("{} = {}", attrs[i].name, value_text(op, attrs[i], words));
    }
    return text;
  }

  std::string value_text(OpId op, const Attr& attr, Words words) const {
    const auto list = [](Words dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); };
    switch (attr.form) {
      case Form::pairs:
        return fmt::format("{} x {}", list(words.first(words.size() / 2)),
                           list(words.last(words.size() / 2)));
      case Form::number: return element_text(DType::f64, std::as_bytes(words).data());
      case Form::reduce_kind: return std::string(to_string(static_cast<ReduceKind>(words[0])));
      case Form::direction: return std::string(to_string(static_cast<CompareDirection>(words[0])));
      case Form::atoms:
        return attr.is_list ? atoms_text(mesh_, words) : atoms_text(mesh_, words[0]);
      case Form::constraint:
        return sharding(program_.constraints[static_cast<std::size_t>(words[0])],
                        program_.result(op));
      default: return attr.is_list ? list(words) : fmt::format("{}", words[0]);
    }
  }

  std::string table_text(OpId op, Form form) const {
    if (form == Form::elements) return constant_text(op);
    const CustomTarget& target = program_.custom_target(op);
    return fmt::format("target = {}, rule = {}", quoted(target.name), quoted(target.rule));
  }

  std::string constant_text(OpId op) const {
    const TensorType& type = program_.type(program_.result(op));
    const std::int64_t size = byte_size(type.dtype);
    const std::byte* bytes = program_.const_pool.data() + program_.op_attrs(op)[0];
    const std::int64_t count = program_.op_attrs(op)[1] / size;
    if (count == 1) return "value = " + element_text(type.dtype, bytes);
    std::string text;
    for (std::int64_t i = 0; i < count; ++i) {
      text += (i == 0 ? "" : ", ") + element_text(type.dtype, bytes + i * size);
    }
    return "values = [" + text + "]";
  }

  const Program& program_;
  const Mesh& mesh_;
};

}  // namespace

std::string to_text(const Program& program, const Mesh& mesh) {
  return Printer(program, mesh).print();
}

}  // namespace weft
