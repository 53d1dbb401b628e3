#include "chips/pjrt/compile_options.hpp"

#include <bit>
#include <string_view>

namespace weft::pjrt {
namespace {

/// A message in the wire format of protocol buffers. Its functions append fields.
class Message {
 public:
  Message& number(int field, std::uint64_t value) {
    key(field, 0);
    varint(value);
    return *this;
  }
  Message& real(int field, double value) {
    key(field, 1);
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int byte = 0; byte < 8; ++byte) bytes_ += static_cast<char>(bits >> (8 * byte));
    return *this;
  }
  Message& bytes(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
    return *this;
  }
  const std::string& str() const { return bytes_; }

 private:
  void key(int field, std::uint64_t wire_type) {
    varint(static_cast<std::uint64_t>(field) << 3 | wire_type);
  }

  std::string bytes_;
};

// The numbers of fields in XLA's messages, a namespace for each message.
namespace options_field {
constexpr int kBuild = 3, kPortable = 4, kFlags = 7;
}
namespace build_field {
constexpr int kOrdinal = 1, kReplicas = 4, kPartitions = 5, kAssignment = 9;
}
namespace assignment_field {
constexpr int kReplicas = 1, kComputations = 2, kDevices = 3;
}

std::string assignment(const std::vector<int>& devices) {
  Message ids;
  for (const int id : devices) ids.varint(static_cast<std::uint64_t>(id));
  return Message()
      .number(assignment_field::kReplicas, devices.size())
      .number(assignment_field::kComputations, 1)
      .bytes(assignment_field::kDevices, Message().bytes(1, ids.str()).str())
      .str();
}

std::string flag(const std::string& name, const FlagValue& value) {
  Message typed;
  if (const auto* text = std::get_if<std::string>(&value)) typed.bytes(1, *text);
  if (const auto* yes = std::get_if<bool>(&value)) typed.number(2, *yes ? 1 : 0);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    typed.number(3, static_cast<std::uint64_t>(*integer));
  }
  if (const auto* real = std::get_if<double>(&value)) typed.real(4, *real);
  return Message().bytes(1, name).bytes(2, typed.str()).str();
}

}  // namespace

std::string CompileOptions::bytes() const {
  constexpr auto kNoOrdinal = static_cast<std::uint64_t>(-1);
  Message build;
  build.number(build_field::kOrdinal, kNoOrdinal)
      .number(build_field::kReplicas, devices.empty() ? 1 : devices.size())
      .number(build_field::kPartitions, 1);
  if (!devices.empty()) build.bytes(build_field::kAssignment, assignment(devices));
  Message all;
  all.bytes(options_field::kBuild, build.str());
  if (devices.empty()) all.number(options_field::kPortable, 1);
  for (const auto& [name, value] : flags) all.bytes(options_field::kFlags, flag(name, value));
  return all.str();
}

}  // namespace weft::pjrt
