#include "tools/weft/inspect/inspect.hpp"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "data/files/utf8.hpp"
#include "inspect/hosts/raw_answer.hpp"
#include "inspect/systems/system_reader.hpp"
#include "tools/weft/inspect/history.hpp"
#include "tools/weft/inspect/job.hpp"
#include "tools/weft/inspect/logs.hpp"
#include "tools/weft/inspect/past_run.hpp"
#include "tools/weft/inspect/programs.hpp"
#include "tools/weft/inspect/serve.hpp"
#include "tools/weft/inspect/show_tensors.hpp"
#include "tools/weft/inspect/systems.hpp"
#include "tools/weft/inspect/top.hpp"
#include "tools/weft/inspect/views.hpp"
#include "tools/weft/inspect/why.hpp"

namespace weft {
namespace {

struct InspectOptions {
  std::string what;
  bool json = false;
  bool verify = false;
  bool raw = false;
};

/// Returns whether the word is the path of a checkpoint or a file of tensors. Neither a job's name
/// nor a run folder is such a path; a run folder stands for its job.
bool is_tensors(const std::string& what) {
  std::error_code error;
  const bool is_path = what.find('/') != std::string::npos ||
                       (std::filesystem::exists(what, error) && find_jobs(what).empty() &&
                        find_actor_systems(what).empty() && !find_past_run(what));
  return is_path && !JobReader::is_run_folder(what) && !find_job_in(what);
}

/// Answers the requests of `weft inspect` on another host, until stdin ends.
int answer_requests(const std::string& memory_id) {
  std::string line;
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    line += static_cast<char>(c);
    if (line.size() > kRawRequestBytesMax) {
      fail(Errc::corrupt, "a request has more than {} bytes", kRawRequestBytesMax);
    }
    if (c != '\n') continue;
    const std::string answer = raw_answer(memory_id, parse_raw_request(line));
    line.clear();
    const bool is_written = std::fwrite(answer.data(), 1, answer.size(), stdout) == answer.size();
    if (!is_written || std::fflush(stdout) != 0) return kUnreadable;
  }
  return 0;
}

int run(const InspectOptions& options) {
  if (options.raw) return answer_requests(options.what);
  if (is_tensors(options.what)) return show_tensors(options.what, options.json, options.verify);
  if (options.verify) {
    fmt::print(stderr, "--verify is for the folder of a checkpoint: \"{}\" isn't one\n",
               visible(options.what));
    return kUsage;
  }
  return options.what.empty() ? list_jobs(options.json) : show_job(options.what, options.json);
}

}  // namespace

void add_inspect(CLI::App& app, int& code) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* inspect = app.add_subcommand(
      "inspect",
      "look into jobs and actor systems; without arguments: like ps; with a job or a system: like "
      "show; with a PATH: show its tensors");
  inspect->add_option("job", options->what,
                      "a job's or an actor system's id, the beginning of it, or its name; a run "
                      "folder; or the path "
                      "of a checkpoint or of safetensors");
  inspect->add_flag("--verify", options->verify,
                    "read all bytes of a checkpoint and compare the checksums");
  inspect->add_flag("--json", options->json, "as JSON (docs/inspect.md)");
  inspect
      ->add_flag("--raw", options->raw,
                 "answer weft inspect on another host, which writes requests to stdin")
      ->group("");  // not shown in the help
  inspect->callback([options, inspect, &code] {
    if (inspect->get_subcommands().empty()) code = run(*options);
  });
  add_inspect_views(*inspect, code);
  add_inspect_programs(*inspect, code);
  add_inspect_why(*inspect, code);
  add_inspect_top(*inspect, code);
  add_inspect_history(*inspect, code);
  add_inspect_logs(*inspect, code);
  add_inspect_serve(*inspect, code);
  add_inspect_blocks(*inspect, code);
}

}  // namespace weft
