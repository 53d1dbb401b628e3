#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "data/files/utf8.hpp"
#include "inspect/snapshot/json_text.hpp"
#include "inspect/why/why.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

Json to_json(const Root& root) {
  Json json{{"class", to_string(root.cause)},
            {"actor", root.actor},
            {"text", root.headline},
            {"workers", root.workers},
            {"chips", root.chips},
            {"pid", root.pid},
            {"pids", root.pids},
            {"host", root.host < 0 ? Json() : Json(root.host)},
            {"tid", root.tid},
            {"place", {{"step", root.step}, {"collective", root.collective}}},
            {"process",
             {{"state", root.process},
              {"wchan", root.wchan},
              {"tracer", root.tracer},
              {"signal", root.signal},
              {"mutex_owner", root.mutex_owner}}},
            {"stack", Json::array()},
            {"waiters", root.waiters},
            {"notes", Json::array()},
            {"fix", root.fix}};
  json["since_s"] = root.since_s < 0 ? Json() : Json(root.since_s);
  for (const StackFrame& frame : root.stack) {
    json["stack"].push_back(
        {{"function", frame.function}, {"file", frame.file}, {"line", frame.line}});
  }
  for (const Note& note : root.notes) {
    json["notes"].push_back({{"label", note.label}, {"text", note.text}});
  }
  return json;
}

std::string fix_line(const std::string& fix) {
  return fmt::format("  {:<6} {}\n", "fix:", visible(fix));
}

}  // namespace

std::string pid_text(const Root& root) {
  const std::string host = root.host < 0 ? "" : fmt::format(" on host {}", root.host);
  return fmt::format("pid {}{}", root.pid, host);
}

std::string to_text(const Why& why) {
  std::string summary;
  if (!why.summary.empty()) {
    summary = fmt::format("{:<8} {}\n", to_string(why.verdict), visible(why.summary));
  }
  // With the verdict `waits`, no root is blamed yet. The summary then comes first, for readers who
  // read only one line.
  const bool is_first = why.verdict == Verdict::waits;
  std::string text = is_first ? summary : "";
  for (const Root& root : why.roots) {
    if (!text.empty()) text += '\n';
    text += fmt::format("{:<8} {}\n", to_string(root.cause), visible(root.headline));
    for (const Note& note : root.notes) {
      text += fmt::format("  {:<6} {}\n", note.label, visible(note.text));
    }
    text += fix_line(root.fix);
  }
  if (!is_first) text += summary;
  if (!why.fix.empty()) text += fix_line(why.fix);
  for (const std::string& remark : why.remarks)
    text += fmt::format("note     {}\n", visible(remark));
  return text;
}

std::string to_json(const Why& why) {
  Json json{{"schema", "weft.why/2"}, {"job", why.job},
            {"name", why.name},       {"verdict", to_string(why.verdict)},
            {"summary", why.summary}, {"idle_s", why.idle_s},
            {"roots", Json::array()}, {"fix", why.fix},
            {"waits", Json::array()}, {"remarks", why.remarks}};
  json["kept_step"] = why.kept_step ? Json(*why.kept_step) : Json();
  for (const Root& root : why.roots) json["roots"].push_back(to_json(root));
  for (const Wait& wait : why.waits) {
    json["waits"].push_back({{"from", why.names.at(static_cast<std::size_t>(wait.from))},
                             {"to", why.names.at(static_cast<std::size_t>(wait.to))},
                             {"on", wait.on},
                             {"since_s", wait.since_s}});
  }
  return json_text(json);
}

}  // namespace weft
