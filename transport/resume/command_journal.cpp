#include "transport/resume/command_journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <sstream>

#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"

namespace weft {
namespace {

/// The size in bytes of the largest journal that is read. A job has at most 4 MiB of commands, and
/// the journal has two lines for each command.
constexpr std::size_t kJournalBytesMax = std::size_t{256} << 20;

std::string journal_in(const std::string& run_dir) { return run_dir + "/commands.jsonl"; }

std::string line_of(const StoredCommand& command) {
  nlohmann::ordered_json line;
  line["number"] = command.number;
  line["step"] = command.step;
  line["name"] = command.name;
  line["payload"] = nlohmann::ordered_json::parse(command.payload, nullptr, false);
  line["read"] = command.is_read;
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

void add_to_journal(const std::string& run_dir, std::span<const StoredCommand> commands) {
  std::string lines;
  for (const StoredCommand& command : commands) lines += line_of(command);
  const std::string path = journal_in(run_dir);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  bool is_good = file >= 0;
  for (std::string_view rest = lines; is_good && !rest.empty();) {
    const ssize_t written = ::write(file, rest.data(), rest.size());
    is_good = written > 0 || errno == EINTR;
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
  }
  const int error = errno;
  if (file >= 0) ::close(file);
  if (!is_good) fail(Errc::io, "the journal of commands {}: {}", path, std::strerror(error));
}

std::vector<StoredCommand> read_journal(const std::string& run_dir) {
  std::map<std::uint64_t, StoredCommand> by_number;
  std::istringstream text(find_file_text(journal_in(run_dir), kJournalBytesMax).value_or(""));
  for (std::string line; std::getline(text, line);) {
    try {
      const auto json = nlohmann::json::parse(line);
      const std::uint64_t number = json.at("number");
      by_number[number] = {.number = number,
                           .step = json.at("step"),
                           .name = json.at("name"),
                           .payload = json.at("payload").dump(),
                           .is_read = json.at("read")};
    } catch (const nlohmann::json::exception&) {
      continue;
    }
  }
  std::vector<StoredCommand> commands;
  for (auto& [number, command] : by_number) commands.push_back(std::move(command));
  return commands;
}

}  // namespace weft
