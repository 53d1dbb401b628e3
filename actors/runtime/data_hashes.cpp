#include "actors/runtime/data_hashes.hpp"

#include <array>
#include <bit>
#include <variant>

#include <weft/tensor/error.hpp>

#include "data/files/envelope.hpp"

namespace weft {
namespace {

/// Returns a text such as "data.1 i32[32] (digits.cpp:89)".
std::string label(const Program& program, const ProgramInput& input) {
  const std::string& loc = program.locs[input.loc];
  return fmt::format("{} {}{}", input.name, program.type(input.value).to_string(),
                     loc.empty() ? "" : " (" + loc + ")");
}

const LocalRows* local_rows(const Binding& binding) {
  const auto* source = std::get_if<SourcePtr>(&binding);
  return source == nullptr ? nullptr : (*source)->local();
}

bool is_uploaded(const Binding& binding) { return !std::holds_alternative<BoundBuffer>(binding); }

std::uint64_t hash_of(const Binding& binding) {
  if (const auto* data = std::get_if<HostData>(&binding)) return sampled_hash(**data);
  if (const LocalRows* rows = local_rows(binding)) return sampled_hash(rows->bytes());
  return std::get<SourcePtr>(binding)->digest();
}

}  // namespace

DataChecks data_checks(std::string_view variable) {
  if (variable.empty()) return DataChecks::first_and_seldom;
  if (variable == "0") return DataChecks::never;
  if (variable == "all") return DataChecks::always;
  fail(Errc::invalid_argument,
       "WEFT_CHECK_DATA = \"{}\": expected 0 (never), all (every run), or nothing", variable);
}

bool is_due(DataChecks checks, std::uint64_t run) {
  if (checks == DataChecks::first_and_seldom) return std::has_single_bit(run) || run % 50 == 0;
  return checks == DataChecks::always;
}

std::uint64_t sampled_hash(std::span<const std::byte> bytes) {
  if (bytes.size() <= kHashedWhole) return xxh3(bytes);
  std::array<std::uint64_t, kHashedBlocks + 1> hashes{};
  const std::size_t last = bytes.size() - kHashedBlock;
  for (std::size_t i = 0; i < kHashedBlocks; ++i) {
    const std::size_t begin = last / (kHashedBlocks - 1) * i;
    const bool is_last = i + 1 == kHashedBlocks;
    hashes[i] = xxh3(bytes.subspan(is_last ? last : begin, kHashedBlock));
  }
  hashes[kHashedBlocks] = bytes.size();
  return xxh3(std::as_bytes(std::span(hashes)));
}

bool sets_state(const Program& program, std::span<const Binding> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_uploaded(inputs[i]) && is_state(program.inputs[i].kind)) return true;
  }
  return false;
}

DataHashes hash_data(const Program& program, std::span<const Binding> inputs, std::size_t first) {
  DataHashes hashes;
  const auto add = [&](std::size_t i) {
    if (!is_uploaded(inputs[i])) return;
    std::string name = label(program, program.inputs[i]);
    if (const LocalRows* rows = local_rows(inputs[i])) {
      name = fmt::format("{} of {}", rows->name(), name);
    }
    hashes.tensors.push_back(std::move(name));
    hashes.hashes.push_back(hash_of(inputs[i]));
  };
  for (std::size_t i = first; i < inputs.size(); ++i) {
    if (is_state(program.inputs[i].kind)) add(i);
  }
  hashes.num_states = static_cast<std::uint32_t>(hashes.tensors.size());
  for (std::size_t i = first; i < inputs.size(); ++i) {
    if (!is_state(program.inputs[i].kind)) add(i);
  }
  return hashes;
}

}  // namespace weft
