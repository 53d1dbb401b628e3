#pragma once
/// HloWriter: a text of StableHLO ops in MLIR's generic form, which grows op by op.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weft/tensor/type.hpp>

namespace weft {

using HloDims = std::vector<std::int64_t>;

/// The type of a value in the text. Unlike a TensorType, it may have more than kDimCountMax dims,
/// and elements such as "ui64".
struct HloType {
  std::string_view element = "f32";
  HloDims dims{};

  std::string text() const;  ///< such as "tensor<2x3xf32>"
  std::int64_t num_elements() const;
  int rank() const { return static_cast<int>(dims.size()); }
  HloType with(std::string_view other_element) const { return {other_element, dims}; }
  HloType with(HloDims other_dims) const { return {element, std::move(other_dims)}; }
  bool is_floating() const { return element[0] == 'f' || element[0] == 'b'; }
  bool is_half() const { return element == "bf16" || element == "f16"; }
};
/// Returns the name of the dtype in StableHLO.
std::string_view element_name(DType dtype);
HloType hlo_type(const TensorType& type);

/// A value of the text, with its name ("%7").
struct HloValue {
  std::string name{};
  HloType type{};
};

// These functions return texts of attributes. hlo_array() returns text such as array<i64: 1, 2>,
// hlo_rows() text such as dense<[[1, 2]]> : tensor<1x2xi64> (rows have equal lengths), and
// hlo_quoted() `text` in quotes.
std::string hlo_array(std::span<const std::int64_t> numbers);
std::string hlo_rows(std::span<const HloDims> rows);
std::string hlo_quoted(std::string_view text);

class HloWriter {
 public:
  using Values = std::vector<HloValue>;
  using Body = std::function<Values(const Values& arguments)>;

  /// Sets the "file:line" of the ops that are appended later, for compilers' errors; "" for none.
  void set_location(std::string_view file_line);

  /// Appends an op and returns its results. `kind` is the name of a StableHLO op, or a name with
  /// another dialect, such as "chlo.erf". `attributes` is a list such as "dimension = 1 : i64", and
  /// `regions` has texts that region() returned.
  Values ops(std::string_view kind, const Values& operands, const std::vector<HloType>& types,
             const std::string& attributes = "", const std::vector<std::string>& regions = {});
  HloValue op(std::string_view kind, const Values& operands, const HloType& type,
              const std::string& attributes = "", const std::vector<std::string>& regions = {}) {
    return ops(kind, operands, {type}, attributes, regions)[0];
  }
  /// Returns the text of a region with the ops that `body` appends. The region returns the values
  /// that `body` returns. Its ops may read values of the regions around it.
  std::string region(const std::vector<HloType>& arguments, const Body& body);
  /// Returns the region of a reduction, in which the op `kind` combines two scalars.
  std::string combiner(std::string_view kind, std::string_view element);

  // The following functions append common ops and return their results.

  HloValue unary(std::string_view kind, const HloValue& x) { return op(kind, {x}, x.type); }
  /// The operands of binary ops, given in braces. Every compiler evaluates a list in braces from
  /// left to right, so calls in such a list append their ops in the same order everywhere.
  struct Pair {
    const HloValue& a;
    const HloValue& b;
  };
  struct Choice {
    const HloValue& predicate;
    const HloValue& then;
    const HloValue& otherwise;
  };
  HloValue binary(std::string_view kind, const Pair& x) { return op(kind, {x.a, x.b}, x.a.type); }
  /// `direction` is "EQ", "NE", "LT", "LE", "GT" or "GE".
  HloValue compare(std::string_view direction, const Pair& x);
  HloValue select(const Choice& x) {
    return op("select", {x.predicate, x.then, x.otherwise}, x.then.type);
  }
  /// Appends a constant whose elements are all `value`. An integer element type must be able to
  /// represent `value` exactly.
  HloValue splat(const HloType& type, double value);
  HloValue constant(const HloType& type, std::span<const std::byte> row_major);
  /// Appends a constant vector of the numbers, which is i32 if all of them fit, otherwise i64.
  HloValue integers(std::span<const std::int64_t> numbers);
  HloValue iota(const HloType& type, int dim);
  /// Converts to another element type. Returns x if it already has this type.
  HloValue convert(const HloValue& x, std::string_view element);
  HloValue reshape(const HloValue& x, HloDims dims);
  HloValue transpose(const HloValue& x, std::span<const std::int64_t> permutation);
  /// Dim i of x becomes dim dims[i] of the result.
  HloValue broadcast(const HloValue& x, const HloType& type,
                     std::span<const std::int64_t> dims = {});
  /// `low` and `high` may be negative. Returns x if all counts are 0.
  HloValue pad(const HloValue& x, const HloValue& padding, const HloDims& low, const HloDims& high,
               const HloDims& interior);
  HloValue slice(const HloValue& x, const HloDims& start, const HloDims& limit,
                 const HloDims& stride);
  HloValue reduce(std::string_view kind, const HloValue& x, double neutral,
                  std::span<const std::int64_t> dims);

  /// Returns the complete text so far. No region may be open.
  const std::string& text() const { return text_; }

 private:
  std::string indent() const { return std::string(2 * depth_, ' '); }

  std::string text_;
  std::string location_;
  std::size_t depth_ = 2;
  std::uint64_t next_ = 0;
};

}  // namespace weft
