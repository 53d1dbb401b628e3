#include "transport/wires/wire_preamble.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr std::string_view kMagic = "weftwire";
constexpr std::uint32_t kVersion = 1;

/// Writes fields one after the other.
class FieldWriter {
 public:
  explicit FieldWriter(std::span<std::byte> bytes) : at_(bytes.data()) {}

  template <typename Number>
  void number(Number value) {
    for (std::size_t i = 0; i < sizeof value; ++i) {
      *at_++ = static_cast<std::byte>(value >> 8 * i & 0xff);
    }
  }
  void text(std::string_view value, std::size_t size) {
    std::memcpy(at_, value.data(), value.size());
    std::fill(at_ + value.size(), at_ + size, std::byte{0});
    at_ += size;
  }
  void end(const WireEnd& value) {
    number(value.host);
    number(value.worker);
    number(value.chip);
  }

 private:
  std::byte* at_;
};

/// Reads fields one after the other.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : at_(bytes.data()) {}

  template <typename Number>
  Number number() {
    Number value = 0;
    for (std::size_t i = 0; i < sizeof value; ++i) {
      value |= static_cast<Number>(static_cast<Number>(*at_++) << 8 * i);
    }
    return value;
  }
  std::string_view text(std::size_t size) {
    const std::string_view field(reinterpret_cast<const char*>(at_), size);
    at_ += size;
    return field;
  }
  WireEnd end() {
    WireEnd value;
    value.host = number<std::uint32_t>();
    value.worker = number<std::uint32_t>();
    value.chip = number<std::uint32_t>();
    return value;
  }

 private:
  const std::byte* at_;
};

bool is_word(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

/// Returns the job id in a field whose rest is filled with zeros.
std::string job_of(std::string_view field) {
  const std::string_view job = field.substr(0, field.find('\0'));
  if (!is_word(job) || field.find_first_not_of('\0', job.size()) != std::string_view::npos) {
    fail(Errc::corrupt, "the preamble of a wire has a job id that isn't a word");
  }
  return std::string(job);
}

}  // namespace

void require_usable(const WireConfig& config) {
  if (config.job.empty() || config.job.size() > kWireJobBytes || !is_word(config.job)) {
    fail(Errc::invalid_argument, "wire job = \"{}\": expected 1 to {} printable ASCII characters",
         config.job, kWireJobBytes);
  }
}

WirePreamble preamble_to(const WireConfig& config, const WireEnd& peer) {
  return {.job = config.job,
          .generation = config.generation,
          .channel = config.channel,
          .from = config.self,
          .to = peer};
}

WirePreambleBytes encode(const WirePreamble& preamble) {
  WEFT_CHECK(preamble.job.size() <= kWireJobBytes, preamble.job);
  WirePreambleBytes bytes;
  FieldWriter fields(bytes);
  fields.text(kMagic, kMagic.size());
  fields.number(kVersion);
  fields.number(preamble.channel);
  fields.number(preamble.generation);
  fields.end(preamble.from);
  fields.end(preamble.to);
  fields.text(preamble.job, kWireJobBytes);
  return bytes;
}

WirePreamble decode_preamble(std::span<const std::byte, kWirePreambleBytes> bytes) {
  FieldReader fields(bytes);
  if (fields.text(kMagic.size()) != kMagic) {
    fail(Errc::corrupt, "the first bytes of a wire aren't a preamble");
  }
  const auto version = fields.number<std::uint32_t>();
  if (version != kVersion) {
    fail(Errc::version, "the peer speaks version {} of wires, but this process version {}", version,
         kVersion);
  }
  WirePreamble preamble;
  preamble.channel = fields.number<std::uint32_t>();
  preamble.generation = fields.number<std::uint64_t>();
  preamble.from = fields.end();
  preamble.to = fields.end();
  preamble.job = job_of(fields.text(kWireJobBytes));
  return preamble;
}

void require_same(const WirePreamble& received, const WirePreamble& expected) {
  const auto require = [](std::string_view field, const auto& got, const auto& wanted) {
    if (got == wanted) return;
    fail(Errc::invalid_argument, "the {} of the peer's preamble is {}: expected {}", field, got,
         wanted);
  };
  require("job", received.job, expected.job);
  require("generation", received.generation, expected.generation);
  require("channel", received.channel, expected.channel);
  if (received.from != expected.from) {
    require("sender", to_string(received.from), to_string(expected.from));
  }
  if (received.to != expected.to) {
    require("receiver", to_string(received.to), to_string(expected.to));
  }
}

}  // namespace weft
