#pragma once
/// Reads JSON that weft hasn't written, as a value or by handling the parser's events.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace weft {

/// Returns the value of a JSON text. Throws corrupt if the text isn't JSON, or if lists and objects
/// are nested deeper than 64 levels.
nlohmann::json parse_json(std::string_view text);

/// The base of readers that handle the events of nlohmann's parser. Such a reader stores only the
/// values that it needs, and can detect repeated keys. The base refuses every value, so a reader
/// overrides the handlers of the values that its format allows. Handlers return true to continue,
/// or throw.
class StrictJson : public nlohmann::json::json_sax_t {
 public:
  bool null() override;
  bool boolean(bool value) override;
  bool number_integer(std::int64_t value) override;  ///< for numbers below 0, and -0
  bool number_unsigned(std::uint64_t value) override;
  bool number_float(double value, const std::string& text) override;
  bool string(std::string& value) override;
  bool binary(nlohmann::json::binary_t& value) override;
  bool start_object(std::size_t) override;
  bool start_array(std::size_t) override;
  bool end_array() override { return true; }
  bool parse_error(std::size_t at, const std::string& token,
                   const nlohmann::detail::exception& error) override;

  /// Parses the complete text and calls the handlers. The parser doesn't recurse, so deep nesting
  /// takes no stack. Throws corrupt if the text isn't JSON.
  void read(std::span<const std::byte> json);

 protected:
  /// `what`, such as "safetensors header", appears in errors. It isn't copied.
  explicit StrictJson(std::string_view what) : what_(what) {}

  /// Returns a description of the place where the next value is, such as "tensor 'x'".
  virtual std::string place() const = 0;
  /// Returns the kind of value that is expected next.
  virtual std::string_view expected() const = 0;

  std::string_view what() const { return what_; }
  /// Throws corrupt because `found` isn't the expected kind of value.
  [[noreturn]] void refuse(std::string_view found) const;
  /// Throws corrupt because the object `owner` already has the key.
  [[noreturn]] void refuse_second(std::string_view owner, std::string_view key) const;

 private:
  std::string_view what_;
  std::size_t json_bytes_ = 0;
};

}  // namespace weft
