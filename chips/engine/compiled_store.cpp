#include "chips/engine/compiled_store.hpp"

#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"
#include "data/remote/output_file.hpp"

namespace weft {
namespace {

/// The maximum size of a file.
constexpr std::size_t kFileBytesMax = std::size_t{1} << 30;

/// Returns the compiled program, which follows the key in a file. Throws corrupt if the file has
/// another key.
std::string_view compiled_under(const std::string& key, std::span<const std::byte> body) {
  const std::string_view text(reinterpret_cast<const char*>(body.data()), body.size());
  std::uint64_t key_bytes = 0;
  if (text.size() < sizeof key_bytes) fail(Errc::corrupt, "it has no key");
  std::memcpy(&key_bytes, text.data(), sizeof key_bytes);
  const std::string_view rest = text.substr(sizeof key_bytes);
  if (key_bytes != key.size() || !rest.starts_with(key)) {
    fail(Errc::corrupt, "it is that of another program");
  }
  return rest.substr(key.size());
}

}  // namespace

CompiledStore::CompiledStore(std::string folder, Log debug)
    : folder_(std::move(folder)), debug_(std::move(debug)) {}

std::string CompiledStore::path(const std::string& key) const {
  return fmt::format("{}/{:016x}.weftexec", folder_, xxh3(std::as_bytes(std::span(key))));
}

std::optional<std::string> CompiledStore::find(const std::string& key) const {
  if (!is_on()) return std::nullopt;
  try {
    const std::vector<std::byte> bytes = read_file_bytes(path(key), kFileBytesMax);
    return std::string(compiled_under(key, open_file(kCompiledFormat, bytes)));
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) {
      say(fmt::format("{}: {}; the program is compiled again", path(key), error.what()));
    }
    return std::nullopt;
  }
}

void CompiledStore::keep(const std::string& key, std::string_view compiled) const {
  if (!is_on()) return;
  const std::uint64_t key_bytes = key.size();
  std::vector<std::byte> file(kEnvelopePrefixBytes);
  const auto append = [&](const void* bytes, std::size_t size) {
    const auto* const begin = static_cast<const std::byte*>(bytes);
    file.insert(file.end(), begin, begin + size);
  };
  append(&key_bytes, sizeof key_bytes);
  append(key.data(), key.size());
  append(compiled.data(), compiled.size());
  if (file.size() > kFileBytesMax) {
    return say(fmt::format("a compiled program of {} bytes isn't kept: expected at most {}",
                           file.size(), kFileBytesMax));
  }
  seal_envelope(kCompiledFormat, file);
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  try {
    OutputFile out(path(key));
    out.write(file);
    out.finish();
  } catch (const Error& error) {
    say(fmt::format("WEFT_COMPILE_CACHE: {}; a compiled program isn't kept", error.what()));
  }
}

}  // namespace weft
