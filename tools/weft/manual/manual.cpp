#include "tools/weft/manual/manual.hpp"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "data/files/plain_file.hpp"
#include "tools/weft/manual/completions.hpp"
#include "tools/weft/manual/man_page.hpp"

namespace weft {
namespace {

struct Options {
  std::string shell{};
  std::vector<std::string> command{};
  std::string output{};
};

void write(const std::string& path, const std::string& text) {
  if (path.empty()) {
    fmt::print("{}", text);
    return;
  }
  require_local_path(path, "--output");
  std::filesystem::create_directories(std::filesystem::absolute(path).parent_path());
  std::ofstream file(path, std::ios::binary);
  if (!(file << text).flush()) fail(Errc::io, "can't write {}", path);
}

const CommandText& find(const CommandText& program, const std::vector<std::string>& words) {
  const CommandText* at = &program;
  for (const std::string& word : words) {
    const auto found = std::ranges::find(at->commands, word, &CommandText::name);
    if (found == at->commands.end()) {
      std::vector<std::string> names;
      for (const CommandText& inner : at->commands) names.push_back(inner.name());
      fail(Errc::not_found, "{} has no command \"{}\": expected one of {}", at->path, word,
           fmt::join(names, ", "));
    }
    at = &*found;
  }
  return *at;
}

void write_pages(const CommandText& command, const std::string& folder) {
  write(fmt::format("{}/{}.1", folder, man_name(command)), man_page(command, WEFT_VERSION));
  for (const CommandText& inner : command.commands) write_pages(inner, folder);
}

}  // namespace

void add_manual(CLI::App& app, int& code) {
  auto options = std::make_shared<Options>();
  CLI::App* shells = app.add_subcommand("completions", "print a shell's completion script");
  shells->group("");
  shells->add_option("shell", options->shell, "bash, zsh or fish")->required();
  shells->add_option("-o,--output", options->output, "a file instead of stdout");
  shells->callback([&app, options, &code] {
    write(options->output, completions(describe(app, "weft"), options->shell));
    code = 0;
  });
  CLI::App* man =
      app.add_subcommand("man", "print a command's man page: weft man launch | man -l -");
  man->group("");
  man->add_option("command", options->command, "the command's words");
  man->add_option("-o,--output", options->output, "a folder, into which all pages are written");
  man->callback([&app, options, &code] {
    const CommandText program = describe(app, "weft");
    if (options->output.empty()) {
      write("", man_page(find(program, options->command), WEFT_VERSION));
    } else {
      write_pages(program, options->output);
    }
    code = 0;
  });
}

}  // namespace weft
