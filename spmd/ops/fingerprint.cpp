#include "spmd/ops/fingerprint.hpp"

#include <bit>
#include <span>

#include "spmd/ops/row.hpp"

namespace weft {
namespace {

/// A hash with two independent 64-bit lanes. The step of a lane is bijective in the lane's state
/// and in the word, so programs that differ in only one word have different digests. result() mixes
/// all bits (splitmix64's finalizer, S. Vigna). The digest has no key, so it doesn't resist
/// attacks.
class Digest {
 public:
  void add(std::uint64_t word) {
    low_ = (low_ ^ word) * 0x9fb21c651e98df25U;
    low_ ^= low_ >> 32;
    high_ = std::rotl(high_ + word, 29) * 0xd6e8feb86659fd93U;
  }
  /// Adds two numbers below 2^32.
  void add_pair(std::uint64_t first, std::uint64_t second) { add(first | second << 32); }
  void add_signed(std::int64_t word) { add(static_cast<std::uint64_t>(word)); }

  void add_bytes(std::span<const std::byte> bytes) {
    add(bytes.size());
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) add(word_of(bytes.first(8)));
    if (!bytes.empty()) add(word_of(bytes));
  }

  void add_sharding(const Sharding& sharding) {
    for (const AtomList atoms : sharding.dims) add(atoms.bits());
    add(sharding.provenance);
    add(std::uint64_t{sharding.unreduced} | std::uint64_t{sharding.replicated} << 16 |
        std::uint64_t{sharding.open_mask} << 32 |
        static_cast<std::uint64_t>(sharding.reduce_kind) << 40);
  }

  void add_type(const TensorType& type) {
    add_pair(static_cast<std::uint64_t>(type.dtype), static_cast<std::uint64_t>(type.shape.size()));
    for (const std::int64_t dim : type.shape) add_signed(dim);
  }

  Fingerprint result() const {
    const std::uint64_t low = mix(low_);
    return {low, mix(high_ ^ low)};
  }

 private:
  /// Returns up to 8 bytes as a little-endian word.
  static std::uint64_t word_of(std::span<const std::byte> bytes) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      word |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
    }
    return word;
  }

  static std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }

  std::uint64_t low_ = 0x243f6a8885a308d3U;
  std::uint64_t high_ = 0x13198a2e03707344U;
};

/// Adds the table entries to which attributes refer, instead of the entries' indices.
void add_attrs(Digest& digest, const Program& program, OpId op) {
  const std::span<const std::int64_t> attrs = program.op_attrs(op);
  if (attrs.empty()) return;
  switch (table_of(program.kind(op))) {
    case Form::elements:
      digest.add_bytes(
          std::span(program.const_pool)
              .subspan(static_cast<std::size_t>(attrs[0]), static_cast<std::size_t>(attrs[1])));
      return;
    case Form::constraint:
      digest.add_sharding(program.constraints[static_cast<std::size_t>(attrs[0])]);
      return;
    case Form::target:
      digest.add_bytes(std::as_bytes(std::span(program.custom_target(op).name)));
      digest.add_bytes(std::as_bytes(std::span(program.custom_target(op).rule)));
      return;
    default:
      for (const std::int64_t attr : attrs) digest.add_signed(attr);
  }
}

}  // namespace

Fingerprint fingerprint(const Program& program) {
  Digest digest;
  digest.add(program.num_values());
  for (const TensorType& type : program.value_types) digest.add_type(type);
  digest.add(program.num_ops());
  for (OpId op = 0; op < program.num_ops(); ++op) {
    const auto operands = program.op_operands(op);
    digest.add_pair(static_cast<std::uint64_t>(program.kind(op)), program.result(op));
    digest.add_pair(operands.size(), program.op_attrs(op).size());
    for (std::size_t i = 0; i < operands.size(); i += 2) {
      digest.add_pair(operands[i], i + 1 < operands.size() ? operands[i + 1] : kNoId);
    }
    add_attrs(digest, program, op);
  }
  digest.add(program.inputs.size());
  for (const ProgramInput& input : program.inputs) {
    digest.add(input.value);
    digest.add(static_cast<std::uint64_t>(input.kind));
    digest.add_bytes(std::as_bytes(std::span(input.name)));
    digest.add_sharding(input.sharding);
  }
  digest.add(program.outputs.size());
  for (const ProgramOutput& output : program.outputs) {
    digest.add(output.value);
    digest.add_bytes(std::as_bytes(std::span(output.name)));
    digest.add_sharding(output.sharding);
    digest.add_signed(output.updates);
  }
  return digest.result();
}

std::string Fingerprint::to_string() const { return fmt::format("{:016x}{:016x}", high, low); }

}  // namespace weft
