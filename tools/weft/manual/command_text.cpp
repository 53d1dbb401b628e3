#include "tools/weft/manual/command_text.hpp"

#include <sstream>

namespace weft {
namespace {

/// Returns the choices of an option's type such as "WHAT:{cores,none}".
std::vector<std::string> choices_of(const std::string& type) {
  const auto begin = type.find('{');
  const auto end = type.find('}', begin);
  std::vector<std::string> choices;
  if (begin == type.npos || end == type.npos) return choices;
  std::istringstream words(type.substr(begin + 1, end - begin - 1));
  for (std::string word; std::getline(words, word, ',');) choices.push_back(word);
  return choices;
}

OptionText describe(const CLI::Option& option) {
  OptionText text{.description = option.get_description(),
                  .is_positional = option.get_positional()};
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  if (text.is_positional) text.names = {option.get_name(true, false)};
  if (option.get_items_expected_max() == 0) return text;
  const std::string type = option.get_type_name();
  text.value = type.substr(0, type.find_first_of(":{"));
  if (text.value.empty()) text.value = "VALUE";
  text.choices = choices_of(type);
  return text;
}

}  // namespace

CommandText describe(const CLI::App& app, const std::string& path) {
  CommandText text{.path = path, .description = app.get_description(), .footer = app.get_footer()};
  const auto is_shown = [](const CLI::Option* option) { return !option->get_group().empty(); };
  for (const CLI::Option* option : app.get_options(is_shown)) {
    text.options.push_back(describe(*option));
  }
  const auto is_listed = [](const CLI::App* command) { return !command->get_group().empty(); };
  for (const CLI::App* command : app.get_subcommands(is_listed)) {
    text.commands.push_back(describe(*command, path + ' ' + command->get_name()));
  }
  return text;
}

}  // namespace weft
