#include "tools/weft/suggest.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "spmd/base/nearest.hpp"

namespace weft {
namespace {

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* one) {
         return !one->get_group().empty() && !one->get_name().empty();
       })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

const CLI::App* command_of(const CLI::App& app, const std::string& word) {
  const auto all =
      app.get_subcommands([&](const CLI::App* one) { return one->get_name() == word; });
  return all.empty() ? nullptr : all.front();
}

/// Returns whether the option takes the following word as its value.
bool takes_value(const CLI::App& app, const std::string& word) {
  const CLI::Option* option = app.get_option_no_throw(word);
  return option != nullptr && option->get_items_expected_max() > 0;
}

/// Returns a text such as ": did you mean launch?", or `otherwise` if no name is similar enough.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& names,
                         const char* otherwise) {
  constexpr std::size_t kBeginningMin = 3;
  const auto begins = [&](const std::string& name) { return name.starts_with(word); };
  const auto whole = std::ranges::find_if(names, begins);
  if (word.size() >= kBeginningMin && whole != names.end()) {
    return fmt::format(": did you mean {}?", *whole);
  }
  const std::vector<std::string> near = nearest_names(word, names);
  return near.empty() ? otherwise : fmt::format(": did you mean {}?", near.front());
}

}  // namespace

std::string say_unknown(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  std::string path = app.get_name().empty() ? "weft" : app.get_name();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") return {};
    if (word.starts_with("-")) {
      const std::string name = word.substr(0, word.find('='));
      if (!name.starts_with("--") || at->get_option_no_throw(name) != nullptr) {
        if (name == word && takes_value(*at, name)) ++i;
        continue;
      }
      return fmt::format("{} has no option {}{}; to see its options: {} --help", path, name,
                         did_you_mean(name, options_of(*at), ""), path);
    }
    if (const CLI::App* inner = command_of(*at, word)) {
      at = inner;
      path += ' ' + word;
      continue;
    }
    const std::vector<std::string> commands = commands_of(*at);
    const bool has_words = std::ranges::any_of(
        at->get_options(), [](const CLI::Option* option) { return option->get_positional(); });
    if (commands.empty() || has_words) return {};
    return fmt::format("there is no command \"{} {}\"{} {} has {}", path, word,
                       did_you_mean(word, commands, ":"), path, fmt::join(commands, ", "));
  }
  return {};
}

std::vector<std::string> translated(const CLI::App& app, std::vector<std::string> words) {
  if (words.empty() || words.front() != "launch") return words;
  const CLI::App* launch = command_of(app, "launch");
  for (std::size_t i = 1; launch != nullptr && i < words.size(); ++i) {
    std::string& word = words[i];
    if (word == "--" || !word.starts_with("-")) break;
    if (word == "-np" || word == "--np") word = "--workers";
    if (word.starts_with("-np=") || word.starts_with("--np=")) {
      word = "--workers" + word.substr(word.find('='));
    }
    if (takes_value(*launch, word)) ++i;
  }
  return words;
}

}  // namespace weft
