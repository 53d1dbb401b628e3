#include "tools/weft/manual/man_page.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft {
namespace {

/// Escapes text so that roff shows it unchanged, whatever it begins with.
std::string plain(const std::string& text) {
  std::string roff;
  for (const char c : text) {
    if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += "\\-";
    } else {
      roff += c;
    }
  }
  if (roff.starts_with('.') || roff.starts_with('\'')) roff.insert(0, "\\&");
  return roff;
}

std::string bold(const std::string& text) { return "\\fB" + plain(text) + "\\fR"; }

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string synopsis(const CommandText& command) {
  std::string text = bold(command.path) + " [\\fIOPTION\\fR]...";
  if (!command.commands.empty()) text += " \\fICOMMAND\\fR";
  for (const OptionText& option : command.options) {
    if (option.is_positional) text += " [\\fI" + plain(upper(option.names.front())) + "\\fR]...";
  }
  return text + '\n';
}

std::string entry(const OptionText& option) {
  std::string text = ".TP\n";
  for (const std::string& name : option.names) {
    text += (&name == &option.names.front() ? "" : ", ") + bold(name);
  }
  if (!option.value.empty() && !option.is_positional)
    text += " \\fI" + plain(option.value) + "\\fR";
  text += '\n' + plain(option.description);
  if (!option.choices.empty()) {
    text += plain(fmt::format(" (one of: {})", fmt::join(option.choices, ", ")));
  }
  return text + '\n';
}

/// Converts a footer to roff. Lines that begin with blanks stay unchanged; other lines are filled.
std::string notes(const std::string& footer) {
  std::string text;
  bool is_verbatim = false;
  std::istringstream lines(footer);
  for (std::string line; std::getline(lines, line);) {
    const bool verbatim = line.starts_with("  ");
    if (verbatim != is_verbatim) text += verbatim ? ".PP\n.RS\n.nf\n" : ".fi\n.RE\n";
    is_verbatim = verbatim;
    if (line.empty()) {
      text += ".PP\n";
    } else {
      text += plain(verbatim ? line.substr(2) : line) + '\n';
    }
  }
  if (is_verbatim) text += ".fi\n.RE\n";
  return text;
}

/// Returns the blocks of a footer that have examples if `of_examples` is set, else the other
/// blocks. Blocks are separated by empty lines.
std::string blocks(const std::string& footer, bool of_examples) {
  constexpr std::string_view kExamples = "Examples:\n";
  std::string text;
  for (std::size_t at = 0; at < footer.size();) {
    const std::size_t end = std::min(footer.find("\n\n", at), footer.size());
    std::string block = footer.substr(at, end - at);
    at = end + 2;
    const bool is_example = block.starts_with(kExamples);
    if (is_example != of_examples) continue;
    if (is_example) block.erase(0, kExamples.size());
    text += (text.empty() ? "" : "\n\n") + block;
  }
  return text;
}

std::string sentence(std::string text) {
  if (text.empty()) return text;
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text.ends_with('.') ? text : text + '.';
}

}  // namespace

std::string man_name(const CommandText& command) {
  std::string name = command.path;
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string man_page(const CommandText& command, const std::string& version) {
  std::string text =
      fmt::format(".TH {} 1 \"\" \"weft {}\" \"weft\"\n", upper(man_name(command)), version);
  text += ".SH NAME\n" + plain(man_name(command)) + " \\- " + plain(command.description) + '\n';
  text += ".SH SYNOPSIS\n" + synopsis(command);
  const std::string prose = blocks(command.footer, false);
  text += ".SH DESCRIPTION\n" + plain(sentence(command.description)) + '\n';
  if (!prose.empty()) text += ".PP\n" + notes(prose);
  if (!command.commands.empty()) {
    text += ".SH COMMANDS\n";
    for (const CommandText& inner : command.commands) {
      text += ".TP\n" + bold(inner.name()) + '\n' + plain(inner.description) + ": see " +
              bold(man_name(inner)) + "(1)\n";
    }
  }
  text += ".SH OPTIONS\n";
  for (const OptionText& option : command.options) text += entry(option);
  const std::string examples = blocks(command.footer, true);
  if (!examples.empty()) text += ".SH EXAMPLES\n" + notes(examples);
  if (command.path != "weft") text += ".SH SEE ALSO\n" + bold("weft") + "(1)\n";
  return text;
}

}  // namespace weft
