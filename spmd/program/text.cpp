#include <weft/spmd/program/text.hpp>

#include <fmt/ranges.h>

#include <weft/spmd/program/element_text.hpp>
#include <weft/spmd/program/infer.hpp>
#include <weft/spmd/program/window.hpp>

namespace weft {
namespace {

using Dims = std::span<const std::int64_t>;

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

/// `[{"data"}, {}]`
std::string atoms_text(const Mesh& mesh, Dims packed) {
  Sharding sharding;
  for (std::size_t i = 0; i < packed.size(); ++i) {
    sharding.dims[i] = AtomList::from_bits(static_cast<std::uint64_t>(packed[i]));
  }
  return sharding.to_string(mesh, static_cast<int>(packed.size()));
}

/// `{"data"}`
std::string atoms_text(const Mesh& mesh, std::int64_t packed) {
  const std::string text = atoms_text(mesh, Dims(&packed, 1));
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
    const Dims attrs = program_.op_attrs(op);
    const auto list = [](Dims dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); };
    switch (program_.kind(op)) {
      case OpKind::constant: return constant_text(op);
      case OpKind::iota:
        return fmt::format("dim = {}", attrs[0]) +
               (attrs[1] == 0 ? "" : ", atoms = " + atoms_text(mesh_, attrs[1]));
      case OpKind::compare:
        return fmt::format("direction = {}", to_string(static_cast<CompareDirection>(attrs[0])));
      case OpKind::rng_bit_generator: return "atoms = " + atoms_text(mesh_, attrs);
      case OpKind::check_index: return "limit_ignored = " + list(attrs);
      case OpKind::gather: return "atoms = " + atoms_text(mesh_, attrs[0]);
      case OpKind::scatter:
        return fmt::format("rows = {}, atoms = {}", attrs[0], atoms_text(mesh_, attrs[1]));
      case OpKind::dynamic_slice: return "sizes = " + list(attrs);
      case OpKind::reverse: return "dims = " + list(attrs);
      case OpKind::transpose: return "perm = " + list(attrs);
      case OpKind::broadcast_in_dim: return "dims = " + list(attrs);
      case OpKind::slice: {
        const auto [start, limit, stride] = triples(attrs);
        return fmt::format("start = {}, limit = {}, stride = {}", list(start), list(limit),
                           list(stride));
      }
      case OpKind::pad: {
        const auto [low, high, interior] = triples(attrs);
        return fmt::format("low = {}, high = {}, interior = {}", list(low), list(high),
                           list(interior));
      }
      case OpKind::concatenate: return fmt::format("dim = {}", attrs[0]);
      case OpKind::dot_general: {
        const DotDimsView dims = dot_dims(attrs);
        return (dims.lhs_batch.empty()
                    ? std::string()
                    : "batch = " + list(dims.lhs_batch) + " x " + list(dims.rhs_batch) + ", ") +
               "contracting = " + list(dims.lhs_contracting) + " x " + list(dims.rhs_contracting);
      }
      case OpKind::reduce:
        return fmt::format("kind = {}, dims = {}", kind_name(attrs[0]), list(attrs.subspan(1)));
      case OpKind::convolution: return convolution_text(op);
      case OpKind::reduce_window:
      case OpKind::select_and_scatter: {
        const std::size_t dims = attrs.size() / 6;
        return fmt::format("kind = {}", kind_name(attrs[0])) +
               lists_text({"size", "stride", "low", "high", "base_dilation", "dilation"},
                          attrs.subspan(1), dims);
      }
      case OpKind::sharding_constraint:
        return "sharding = " + sharding(program_.constraints[static_cast<std::size_t>(attrs[0])],
                                        program_.result(op));
      case OpKind::custom_call:
        return fmt::format("target = {}, rule = {}", quoted(program_.custom_target(op).name),
                           quoted(program_.custom_target(op).rule));
      case OpKind::collective_permute:
        return "from = " + atoms_text(mesh_, attrs.first(attrs.size() / 2)) +
               ", to = " + atoms_text(mesh_, attrs.last(attrs.size() / 2));
      case OpKind::all_reduce:
        return fmt::format("atoms = {}, kind = {}", atoms_text(mesh_, attrs[0]),
                           kind_name(attrs[1]));
      case OpKind::reduce_scatter:
        return fmt::format("atoms = {}, kind = {}, dim = {}", atoms_text(mesh_, attrs[0]),
                           kind_name(attrs[1]), attrs[2]);
      case OpKind::all_gather:
      case OpKind::all_slice:
        return fmt::format("atoms = {}, dim = {}", atoms_text(mesh_, attrs[0]), attrs[1]);
      case OpKind::all_to_all:
        return fmt::format("atoms = {}, split = {}, concat = {}", atoms_text(mesh_, attrs[0]),
                           attrs[1], attrs[2]);
      case OpKind::normalize:
      case OpKind::normalize_grad:
        return fmt::format("center = {}, eps = {}", attrs[0], number_text(attrs[1]));
      case OpKind::attention:
        return fmt::format("causal = {}, scale = {}, atoms = {}", attrs[0], number_text(attrs[1]),
                           atoms_text(mesh_, attrs[2]));
      case OpKind::attention_grad:
        return fmt::format("causal = {}, scale = {}", attrs[0], number_text(attrs[1]));
      default: return {};
    }
  }

  /// Of an f64 that an attribute holds.
  static std::string number_text(const std::int64_t& bits) {
    return element_text(DType::f64, std::as_bytes(std::span(&bits, 1)).data());
  }

  /// ", low = [0, 0], high = [1, 1]": lists of `count` words each.
  static std::string lists_text(std::initializer_list<std::string_view> names, Dims words,
                                std::size_t count) {
    std::string text;
    for (const std::string_view name : names) {
      text += fmt::format(", {} = [{}]", name, fmt::join(words.first(count), ", "));
      words = words.subspan(count);
    }
    return text;
  }

  std::string convolution_text(OpId op) const {
    const Dims attrs = program_.op_attrs(op);
    const std::size_t spatial = spatial_count(attrs.size());
    const std::size_t flag = 3 * (2 + spatial) + 5 * spatial;
    const Dims group = attrs.subspan(flag + 1);
    return lists_text({"lhs", "rhs", "result"}, attrs, 2 + spatial).substr(2) +
           lists_text({"stride", "low", "high", "lhs_dilation", "rhs_dilation"},
                      attrs.subspan(3 * (2 + spatial)), spatial) +
           fmt::format(", reversed = {}", attrs[flag]) +
           (group.empty() ? std::string() : lists_text({"group"}, group, group.size()));
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

  static std::string_view kind_name(std::int64_t kind) {
    return to_string(static_cast<ReduceKind>(kind));
  }

  const Program& program_;
  const Mesh& mesh_;
};

}  // namespace

std::string to_text(const Program& program, const Mesh& mesh) {
  return Printer(program, mesh).print();
}

}  // namespace weft
