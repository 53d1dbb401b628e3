#pragma once
/// JSON from outside: as a value, or by the parser's events.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace weft {

/// Throws corrupt for what is no JSON, and for lists and objects of more than 64 levels.
nlohmann::json parse_json(std::string_view text);

/// Base of readers over the parser's events: nothing is held but what a reader keeps, and keys that
/// are there twice can be seen. A handler of nlohmann's events that takes no value: what a format
/// allows, its reader overrides. Handlers return true, to continue, or throw.
class StrictJson : public nlohmann::json::json_sax_t {
 public:
  bool null() override;
  bool boolean(bool value) override;
  bool number_integer(std::int64_t value) override;  ///< below 0, or -0
  bool number_unsigned(std::uint64_t value) override;
  bool number_float(double value, const std::string& text) override;
  bool string(std::string& value) override;
  bool binary(nlohmann::json::binary_t& value) override;
  bool start_object(std::size_t) override;
  bool start_array(std::size_t) override;
  bool end_array() override { return true; }
  bool parse_error(std::size_t at, const std::string& token,
                   const nlohmann::detail::exception& error) override;

  /// Gives all of the text to the handlers, without recursion, so that nesting costs no stack.
  /// Throws corrupt if it isn't JSON.
  void read(std::span<const std::byte> json);

 protected:
  /// `what` is for errors, "safetensors header", and isn't copied.
  explicit StrictJson(std::string_view what) : what_(what) {}

  /// Where in the text the next value is: "tensor 'x'".
  virtual std::string place() const = 0;
  /// What it has to be there.
  virtual std::string_view expected() const = 0;

  std::string_view what() const { return what_; }
  /// Throws corrupt: the value found isn't what has to be there.
  [[noreturn]] void refuse(std::string_view found) const;
  /// Throws corrupt: the object `owner` already has the key.
  [[noreturn]] void refuse_second(std::string_view owner, std::string_view key) const;

 private:
  std::string_view what_;
  std::size_t json_bytes_ = 0;
};

}  // namespace weft
