#include "transport/collectives/call_record.hpp"

#include <array>
#include <vector>

#include <fmt/ranges.h>

#include "transport/memory/text_words.hpp"

namespace weft {
namespace {

/// Returns the names of the axes to which the atoms belong. A name says which atoms of its axis are
/// in the list, unless all are: "data:1".
std::vector<std::string> axes_of(AtomList atoms, const Mesh& mesh) {
  std::vector<std::string> axes;
  for (int i = 0; i < atoms.size();) {
    const Atom atom = atoms[i];
    if (atom == 0 || atom > mesh.num_atoms()) return {"unknown atoms"};
    const int axis = mesh.atom_axis(atom);
    const std::string& name = mesh.axis_names()[static_cast<std::size_t>(axis)];
    const AtomList whole = mesh.axis_atoms(axis);
    if (whole.is_prefix_of(atoms.suffix_from(i))) {
      axes.push_back(name);
      i += whole.size();
    } else {
      axes.push_back(fmt::format("{}:{}", name, atom - whole[0]));
      ++i;
    }
  }
  return axes;
}

}  // namespace

void write_call(SharedCallWords& to, SharedCallName& to_name, const CallWords& words,
                std::string_view name) noexcept {
  const auto name_words = pack_text<CallRecord::kNameWordCount>(name);
  for (std::size_t i = 0; i < words.size(); ++i) to[i].store(words[i], std::memory_order_relaxed);
  for (std::size_t i = 0; i < name_words.size(); ++i) {
    to_name[i].store(name_words[i], std::memory_order_relaxed);
  }
}

RecordedCall read_call(std::uint64_t number, const SharedCallWords& words,
                       const SharedCallName& name) {
  RecordedCall call;
  call.number = number;
  for (std::size_t i = 0; i < call.words.size(); ++i) {
    call.words[i] = words[i].load(std::memory_order_relaxed);
  }
  std::array<std::uint64_t, CallRecord::kNameWordCount> name_words;
  for (std::size_t i = 0; i < name_words.size(); ++i) {
    name_words[i] = name[i].load(std::memory_order_relaxed);
  }
  call.name = unpack_text(name_words);
  return call;
}

void write_record(CallRecord& record, std::uint64_t number, const CallWords& words,
                  std::uint64_t signature, std::string_view name) noexcept {
  record.number.store(number, std::memory_order_release);
  write_call(record.words, record.name, words, name);
  record.signature.store(signature, std::memory_order_relaxed);
}

std::optional<RecordedCall> read_record(const CallRecord& record) {
  const std::uint64_t number = record.number.load(std::memory_order_acquire);
  if (number == 0) return RecordedCall{};
  RecordedCall call = read_call(number, record.words, record.name);
  const std::uint64_t signature = record.signature.load(std::memory_order_relaxed);
  if (signature != signature_of(call.number, digest_of(call.words))) return std::nullopt;
  return call;
}

CallHeader make_header(std::uint64_t number, std::uint64_t signature, std::uint64_t commit,
                       const CallWords& words, std::string_view name) noexcept {
  CallHeader header{
      .number = number, .signature = signature, .commit = commit, .words = words, .name = {}};
  name.copy(header.name.data(), header.name.size());
  return header;
}

std::optional<RecordedCall> read_header(const CallHeader& header) {
  if (header.number == 0 ||
      header.signature != signature_of(header.number, digest_of(header.words))) {
    return std::nullopt;
  }
  RecordedCall call{.number = header.number, .words = header.words, .name = {}};
  for (const char c : header.name) {
    if (c == '\0') break;
    call.name += c < ' ' && c >= 0 ? '?' : c;
  }
  return call;
}

std::string name_of(const RecordedCall& call, const Mesh& mesh) {
  if (call.number == 0) return "no collective yet";
  const DecodedCall decoded = decode(call.words);
  return fmt::format("{} #{} '{}' over {{{}}}", to_string(decoded.kind), call.number, call.name,
                     fmt::join(axes_of(decoded.atoms, mesh), ", "));
}

std::string to_string(const RecordedCall& call, const Mesh& mesh) {
  std::string text = name_of(call, mesh);
  if (call.number == 0) return text;
  const DecodedCall decoded = decode(call.words);
  if (decoded.kind == CollectiveKind::barrier) return text;
  text += ": ";
  if (decoded.kind == CollectiveKind::all_reduce ||
      decoded.kind == CollectiveKind::reduce_scatter) {
    text += fmt::format("{} ", to_string(decoded.reduce));
  }
  text += fmt::format("{} {} x {}, offset {} to {}", to_string(decoded.dtype), decoded.outer,
                      decoded.count, decoded.source, decoded.destination);
  if (decoded.details != 0) text += fmt::format(", details {:016x}", decoded.details);
  return text;
}

}  // namespace weft
