#include <weft/tensor/print.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>

#include "spmd/program/element.hpp"
#include "spmd/tensor/trace.hpp"

namespace weft {
namespace {

/// The format for all numbers of a tensor, chosen as torch's _Formatter does.
class Format {
 public:
  /// `shown` has the elements that are to be printed.
  Format(DType dtype, const std::vector<const std::byte*>& shown, int precision)
      : dtype_(dtype), precision_(precision) {
    if (is_floating(dtype)) choose(shown);
    for (const std::byte* element : shown) width_ = std::max(width_, text(element).size());
  }

  std::size_t width() const { return width_; }
  std::string padded(const std::byte* element) const {
    return fmt::format("{:>{}}", text(element), width_);
  }

 private:
  void choose(const std::vector<const std::byte*>& shown) {
    double least = std::numeric_limits<double>::infinity();
    double most = 0;
    for (const std::byte* element : shown) {
      const double value = load_element(dtype_, element);
      if (!std::isfinite(value)) continue;
      if (value != std::trunc(value)) are_integers_ = false;
      if (value == 0) continue;
      least = std::min(least, std::abs(value));
      most = std::max(most, std::abs(value));
    }
    if (most == 0) return;
    in_powers_ = most / least > 1000 || most > 1e8 || (!are_integers_ && least < 1e-4);
  }

  std::string text(const std::byte* element) const {
    if (dtype_ == DType::i64) {  // a double can't hold every i64
      std::int64_t number = 0;
      std::memcpy(&number, element, sizeof(number));
      return fmt::format("{}", number);
    }
    const double value = load_element(dtype_, element);
    if (dtype_ == DType::pred) return value != 0 ? "true" : "false";
    if (!is_floating(dtype_)) return fmt::format("{:.0f}", value);
    if (std::isnan(value)) return "nan";
    if (!std::isfinite(value)) return value < 0 ? "-inf" : "inf";
    if (in_powers_) return fmt::format("{:.{}e}", value, precision_);
    if (are_integers_) return fmt::format("{:.0f}.", value);
    return fmt::format("{:.{}f}", value, precision_);
  }

  DType dtype_;
  int precision_;
  bool are_integers_ = true;
  bool in_powers_ = false;
  std::size_t width_ = 0;
};

class Printer {
 public:
  Printer(const TensorType& type, const std::vector<std::byte>& bytes, const PrintOptions& options)
      : type_(type),
        bytes_(bytes),
        options_(options),
        in_short_(type.num_elements() > options.threshold),
        format_(type.dtype, shown(), options.precision) {}

  std::string text() const {
    const std::string start = "tensor(";
    return start + (type_.num_elements() == 0 ? "[]" : part(0, 0, start.size()));
  }

 private:
  const std::byte* at(std::int64_t i) const { return bytes_.data() + i * byte_size(type_.dtype); }

  /// Returns the indices along a dim that are shown; -1 stands for the omitted indices.
  std::vector<std::int64_t> places(int dim) const {
    const std::int64_t size = type_.shape[dim];
    const std::int64_t edge = options_.edge_items;
    std::vector<std::int64_t> result;
    for (std::int64_t i = 0; i < size; ++i) {
      if (in_short_ && size > 2 * edge && i == edge) {
        result.push_back(-1);
        i = size - edge;
      }
      result.push_back(i);
    }
    return result;
  }

  std::vector<const std::byte*> shown() const {
    std::vector<const std::byte*> elements;
    collect(0, 0, elements);
    return elements;
  }

  void collect(int dim, std::int64_t first, std::vector<const std::byte*>& elements) const {
    if (dim == type_.shape.size()) {
      elements.push_back(at(first));
      return;
    }
    for (const std::int64_t i : places(dim)) {
      if (i >= 0) collect(dim + 1, first * type_.shape[dim] + i, elements);
    }
  }

  /// Returns the text of the part of the tensor that has the row-major index `first` in the dims
  /// before `dim`.
  std::string part(int dim, std::int64_t first, std::size_t indent) const {
    const int left = type_.shape.size() - dim;
    if (left == 0) return format_.padded(at(first));
    const std::string space(indent + 1, ' ');
    const auto line = static_cast<std::size_t>(options_.line_width);
    const std::size_t per_line =
        std::max<std::size_t>(1, (line - std::min(line, indent)) / (format_.width() + 2));
    std::string text = "[";
    std::size_t count = 0;
    for (const std::int64_t i : places(dim)) {
      if (count > 0 && left > 1) {
        text += ',' + std::string(static_cast<std::size_t>(left) - 1, '\n') + space;
      } else if (count > 0) {
        text += count % per_line == 0 ? ",\n" + space : ", ";
      }
      text += i < 0 ? (left > 1 ? "..." : " ...")
                    : part(dim + 1, first * type_.shape[dim] + i, indent + 1);
      ++count;
    }
    return text + "]";
  }

  TensorType type_;
  const std::vector<std::byte>& bytes_;
  PrintOptions options_;
  bool in_short_;
  Format format_;
};

std::string sharding_text(const TensorNode& node, const Mesh& mesh) {
  return fmt::format(", sharding={}",
                     node.input_sharding().to_string(mesh, node.type.shape.size()));
}

}  // namespace

std::string to_string(const Tensor& tensor, const PrintOptions& options, std::source_location loc) {
  if (options.precision < 0 || options.precision > 17 || options.edge_items < 1 ||
      options.line_width < 1) {
    fail(Errc::invalid_argument,
         "to_string: precision = {}, edge_items = {}, line_width = {}: expected 0 to 17, and 1 or "
         "more (at {})",
         options.precision, options.edge_items, options.line_width, file_line(loc));
  }
  const std::vector<std::byte> bytes = tensor.to_bytes(loc);
  const TensorNode& node = *tensor.node();
  const Mesh* mesh = Trace::current(loc).runtime().mesh();
  return fmt::format("{}, {}{})", Printer(node.type, bytes, options).text(), node.type.to_string(),
                     mesh == nullptr ? "" : sharding_text(node, *mesh));
}

std::ostream& operator<<(std::ostream& out, Operand x) {
  return x.is_number() ? out << x.number() : out << to_string(x.tensor(), {}, x.loc());
}

}  // namespace weft
