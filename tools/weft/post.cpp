#include "tools/weft/post.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "data/files/utf8.hpp"
#include "inspect/snapshot/json_text.hpp"
#include "tools/weft/inspect/job.hpp"
#include "transport/job/post_socket.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

/// The exit codes besides 0 and kUsage.
constexpr int kNotRead = 2;
constexpr int kTimeIsOver = 3;

struct PostOptions {
  std::string job;
  std::string name;
  std::string payload = "null";
  std::optional<double> timeout_s;
  bool json = false;
};

void print_error(const PostOptions& options, std::string_view error, const std::string& message) {
  if (options.json) {
    fmt::print("{}", json_text(Json{{"error", error}, {"message", message}}));
  } else {
    fmt::print(stderr, "{}\n", visible(message));
  }
}

int say_timeout(const PostOptions& options, const std::string& job) {
  const std::string text = fmt::format(
      "job {}: not all loops have read '{}' within {} s; it stays posted, and a loop reads it when "
      "it calls ctx.commands()",
      job, options.name, *options.timeout_s);
  print_error(options, to_string(Errc::timeout), text);
  return kTimeIsOver;
}

int run(const PostOptions& options) {
  const Json payload = Json::parse(options.payload, nullptr, false);
  if (payload.is_discarded()) {
    print_error(options, to_string(Errc::invalid_argument),
                fmt::format("payload = {}: expected JSON, such as 0.01, '\"text\"' or "
                            "'{{\"rate\": 0.01}}'",
                            options.payload));
    return kUsage;
  }
  const std::optional<std::string> job = find_job(options.job);
  if (!job) return kNotRead;
  std::optional<std::chrono::milliseconds> patience;
  if (options.timeout_s) {
    constexpr double kLongestTimeout = 1e7;  // seconds; the longest timeout
    patience = std::chrono::milliseconds(
        static_cast<std::int64_t>(std::ceil(1000 * std::min(*options.timeout_s, kLongestTimeout))));
  }
  try {
    const auto step = post_command(*job, options.name, payload, patience);
    if (!step) return say_timeout(options, *job);
    if (options.json) {
      fmt::print("{}", json_text(Json{{"job", *job}, {"name", options.name}, {"step", *step}}));
    } else {
      fmt::print("job {}: all loops have read '{}' in step {}\n", *job, options.name, *step);
    }
    return 0;
  } catch (const Error& e) {
    print_error(options, to_string(e.code()), e.what());
    return e.code() == Errc::invalid_argument ? kUsage : kNotRead;
  }
}

}  // namespace

void add_post(CLI::App& app, int& code) {
  auto options = std::make_shared<PostOptions>();
  CLI::App* command =
      app.add_subcommand("post", "post a command to the loops of a running job of this user");
  command->add_option("job", options->job, "the job's id, the beginning of its id, or its name")
      ->required();
  command
      ->add_option("name", options->name, "the command's name: letters, digits, '_', '-' and '.'")
      ->required();
  command->add_option("payload", options->payload, "JSON for the loops; default: null");
  command
      ->add_option("--timeout", options->timeout_s,
                   "seconds to wait until all loops have read the command; default: no limit")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--json", options->json, "as JSON");
  command->footer(
      "Examples:\n"
      "  weft post 93ef learning_rate 0.001\n"
      "  weft post digits save\n"
      "  weft post --timeout 5 93ef evaluate '{\"batches\": 10}'\n"
      "\n"
      "All loops read the command by ctx.commands() in the same step, which is printed.\n"
      "Exit code: 0; 1 for a bad command; 2 if no such job runs, if it refused the command, or\n"
      "if it ended before all loops had read it; 3 if --timeout was over first.");
  command->callback([options, &code] { code = run(*options); });
}

}  // namespace weft
