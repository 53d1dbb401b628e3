#pragma once
/// Parses the parts of modules' texts and of compile options that the fake plug-in needs.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::testing {

/// A type in StableHLO's text.
struct FakeType {
  std::string text;       ///< text such as "2x3xf32"
  std::size_t bytes = 0;  ///< the size of an array of this type
};
struct FakeArgument {
  FakeType type;
  std::optional<std::size_t> result;  ///< the result that may overwrite the argument
};

/// The name of a module and the signature of its function @main.
struct FakeSignature {
  std::string name{};
  std::vector<FakeArgument> arguments{};
  std::vector<FakeType> results{};
};

/// Parses a module's text. Throws std::invalid_argument if the text has no valid function @main.
FakeSignature parse_signature(const std::string& text);

/// The parts of CompileOptionsProto that the fake plug-in uses.
struct FakeOptions {
  std::map<std::string, bool> flags{};  ///< the flags with boolean values
  std::uint64_t replicas = 0;
};
/// Parses compile options. Throws std::invalid_argument for bytes that aren't a protocol buffer.
FakeOptions parse_options(std::string_view bytes);

}  // namespace weft::testing
