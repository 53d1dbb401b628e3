#pragma once
/// Readers of the parts of a module's text and of compile options that the fake plug-in needs.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::testing {

/// A type in StableHLO's text.
struct FakeType {
  std::string text;       ///< "2x3xf32"
  std::size_t bytes = 0;  ///< of a whole array
};
struct FakeArgument {
  FakeType type;
  std::optional<std::size_t> result;  ///< the one that may be written in its place
};

/// The name of a module and the signature of its function @main.
struct FakeSignature {
  std::string name{};
  std::vector<FakeArgument> arguments{};
  std::vector<FakeType> results{};
};

/// Throws std::invalid_argument, with what is wrong, for text without such a function.
FakeSignature parse_signature(const std::string& text);

/// The parts of CompileOptionsProto that the fake plug-in looks at.
struct FakeOptions {
  std::map<std::string, bool> flags{};  ///< those that are true or false
  std::uint64_t replicas = 0;
};
/// Throws std::invalid_argument for bytes that aren't a protocol buffer.
FakeOptions parse_options(std::string_view bytes);

}  // namespace weft::testing
