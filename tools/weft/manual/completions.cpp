#include "tools/weft/manual/completions.hpp"

#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

/// Quotes the text in single quotes, in a form that bash, zsh and fish all accept.
std::string quote(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + '\'';
}

void each(const CommandText& command, const std::function<void(const CommandText&)>& call) {
  call(command);
  for (const CommandText& inner : command.commands) each(inner, call);
}

std::string words_of(const CommandText& command) {
  std::vector<std::string> words;
  for (const CommandText& inner : command.commands) words.push_back(inner.name());
  for (const OptionText& option : command.options) {
    if (!option.is_positional) words.insert(words.end(), option.names.begin(), option.names.end());
  }
  return fmt::format("{}", fmt::join(words, " "));
}

/// Returns the statement by which bash and zsh move from the command `at` to its subcommand `word`,
/// if that exists.
std::string walk(const CommandText& program) {
  std::string text = "    case \"$at $word\" in\n";
  each(program, [&](const CommandText& command) {
    if (&command == &program) return;
    text += fmt::format("      {}) at=\"$at $word\" ;;\n", quote(command.path));
  });
  return text + "    esac\n";
}

/// Returns branches of a `case` that complete the values of options. The `case` matches the command
/// together with the option before the value.
std::string values(const CommandText& program, const char* choices, const char* folders) {
  std::string text;
  each(program, [&](const CommandText& command) {
    for (const OptionText& option : command.options) {
      if (option.is_positional || option.value.empty()) continue;
      std::string action = "return";
      if (option.takes_folder()) action = folders;
      if (!option.choices.empty()) {
        action = fmt::format(fmt::runtime(choices), fmt::join(option.choices, " "));
      }
      for (const std::string& name : option.names) {
        text += fmt::format("    {}) {} ;;\n", quote(command.path + ' ' + name), action);
      }
    }
  });
  return text;
}

std::string for_bash(const CommandText& program) {
  std::string text =
      "# bash completion of weft\n"
      "_weft() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local at=weft word words i\n"
      "  COMPREPLY=()\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    word=${COMP_WORDS[i]}\n"
      "    if [[ $word == -- ]]; then return; fi\n" +
      walk(program) +
      "  done\n"
      "  case \"$at $before\" in\n" +
      values(program, "COMPREPLY=($(compgen -W '{}' -- \"$current\")); return",
             "COMPREPLY=($(compgen -d -- \"$current\")); return") +
      "  esac\n"
      "  case \"$at\" in\n";
  each(program, [&](const CommandText& command) {
    text += fmt::format("    {}) words={} ;;\n", quote(command.path), quote(words_of(command)));
  });
  return text +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "}\n"
         "complete -o default -F _weft weft\n";
}

/// Returns "name:description". `name` must not contain a colon.
std::string described(const std::string& name, const std::string& description) {
  return ' ' + quote(name + ':' + description);
}

std::string for_zsh(const CommandText& program) {
  std::string text =
      "#compdef weft\n"
      "_weft() {\n"
      "  local at=weft word\n"
      "  local -a commands options\n"
      "  for word in ${words[2,CURRENT-1]}; do\n"
      "    if [[ $word == -- ]]; then _files; return; fi\n" +
      walk(program) +
      "  done\n"
      "  case \"$at ${words[CURRENT-1]}\" in\n" +
      values(program, "compadd {}; return", "_files -/; return") +
      "  esac\n"
      "  case \"$at\" in\n";
  each(program, [&](const CommandText& command) {
    text += fmt::format("    {})\n      commands=(", quote(command.path));
    for (const CommandText& inner : command.commands) {
      text += described(inner.name(), inner.description);
    }
    text += ")\n      options=(";
    for (const OptionText& option : command.options) {
      if (option.is_positional) continue;
      for (const std::string& name : option.names) text += described(name, option.description);
    }
    text += ")\n      ;;\n";
  });
  return text +
         "  esac\n"
         "  if [[ ${words[CURRENT]} == -* ]]; then _describe -o option options; return; fi\n"
         "  if (( ${#commands} )); then _describe command commands; else _files; fi\n"
         "}\n"
         "_weft \"$@\"\n";
}

/// Returns the condition, in fish, that a line contains all words of the command's path.
std::string fish_condition(const CommandText& command, const CommandText& program) {
  std::string text;
  std::string rest = command.path.substr(program.path.size());
  while (!rest.empty()) {
    const std::string word = rest.substr(1, rest.find(' ', 1) - 1);
    text += fmt::format("{}__fish_seen_subcommand_from {}", text.empty() ? "" : "; and ", word);
    rest.erase(0, word.size() + 1);
  }
  return text;
}

std::string for_fish(const CommandText& program) {
  std::string text = "# fish completion of weft\n";
  each(program, [&](const CommandText& command) {
    const std::string condition = fish_condition(command, program);
    for (const CommandText& inner : command.commands) {
      std::string before = condition;
      if (before.empty()) before = "__fish_use_subcommand";
      text += fmt::format("complete -c weft -n {} -f -a {} -d {}\n", quote(before), inner.name(),
                          quote(inner.description));
    }
    for (const OptionText& option : command.options) {
      if (option.is_positional) continue;
      text += "complete -c weft";
      if (!condition.empty()) text += " -n " + quote(condition);
      for (const std::string& name : option.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.choices.empty()) {
        text += fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
      } else if (option.takes_folder()) {
        text += " -x -a '(__fish_complete_directories)'";
      } else if (!option.value.empty()) {
        text += " -r";
      }
      text += " -d " + quote(option.description) + '\n';
    }
  });
  return text;
}

}  // namespace

std::string completions(const CommandText& program, const std::string& shell) {
  if (shell == "bash") return for_bash(program);
  if (shell == "zsh") return for_zsh(program);
  if (shell == "fish") return for_fish(program);
  fail(Errc::invalid_argument, "completions for \"{}\": expected bash, zsh or fish", shell);
}

}  // namespace weft
