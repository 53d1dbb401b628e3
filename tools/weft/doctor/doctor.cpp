#include "tools/weft/doctor/doctor.hpp"

#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspect/snapshot/json_text.hpp"
#include "inspect/views/table.hpp"
#include "tools/weft/doctor/findings.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

void print(const std::vector<Finding>& findings) {
  Table table({{"what"}, {"found"}, {"advice"}});
  for (const Finding& finding : findings) table.add({finding.what, finding.found, finding.advice});
  table.print();
}

void print_json(const std::vector<Finding>& findings) {
  Json json{
      {"schema", "weft.doctor/1"}, {"usable", is_usable(findings)}, {"findings", Json::array()}};
  for (const Finding& finding : findings) {
    json["findings"].push_back({{"what", finding.what},
                                {"found", finding.found},
                                {"level", to_string(finding.level)},
                                {"advice", finding.advice}});
  }
  fmt::print("{}", json_text(json));
}

}  // namespace

void add_doctor(CLI::App& app, int& code) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("doctor", "check what this machine offers to jobs");
  command->add_flag("--json", *json, "as JSON");
  command->footer(
      "Examples:\n"
      "  weft doctor\n"
      "  weft doctor --json | jq '.findings[] | select(.level != \"good\")'\n"
      "\n"
      "The exit code is 0, or 1 if no job can run.");
  command->callback([json, &code] {
    const std::vector<Finding> findings = examine(read_machine());
    *json ? print_json(findings) : print(findings);
    code = is_usable(findings) ? 0 : 1;
  });
}

}  // namespace weft
