#include "tools/weft/inspect/inspect.hpp"

#include <algorithm>
#include <ctime>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <weft/error.hpp>

#include "inspect/process/process_state.hpp"
#include "inspect/views/table.hpp"
#include "tools/weft/inspect/history.hpp"
#include "tools/weft/inspect/job.hpp"
#include "tools/weft/inspect/logs.hpp"
#include "tools/weft/inspect/programs.hpp"
#include "tools/weft/inspect/serve.hpp"
#include "tools/weft/inspect/top.hpp"
#include "tools/weft/inspect/views.hpp"
#include "tools/weft/inspect/why.hpp"
#include "tools/weft/show_tensors.hpp"
#include "transport/board/board.hpp"
#include "transport/memory/utf8.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

struct Options {
  std::string job;
  bool json = false;
  bool verify = false;
};

/// Of a board nothing is sure, not even that the time isn't in the far future.
double seconds_since(std::int64_t then_ns) {
  return (static_cast<double>(boottime_ns()) - static_cast<double>(then_ns)) / 1e9;
}

/// "dead" where the board's last word isn't the end, but nobody holds it any more.
std::string status_text(const Board& board) {
  const JobStatus status = board.status();
  const bool over = status == JobStatus::succeeded || status == JobStatus::failed;
  if (!over && !board.is_held()) return "dead";
  return std::string(to_string(status));
}

/// As Mesh::to_string() has it, but of any numbers and names.
std::string mesh_text(const BoardHeader& header) {
  if (header.mesh_shape.empty()) return "none";
  return fmt::format("({}) (\"{}\")", fmt::join(header.mesh_shape, ","),
                     fmt::join(header.axis_names, "\",\""));
}

Json to_json(const ActorRow& row) {
  Json json{{"actor", row.index},
            {"kind", to_string(row.kind)},
            {"state", to_string(row.state)},
            {"worker", row.worker},
            {"chip", row.chip},
            {"pid", row.pid},
            {"step", row.step},
            {"mailbox", row.mailbox},
            {"last_message", row.last_message},
            {"last_error", row.last_error},
            {"updated_s_ago", row.updated_ns == 0 ? -1.0 : seconds_since(row.updated_ns)}};
  if (row.collective != 0) {
    json["collective"] = {{"number", row.collective},
                          {"name", row.collective_name},
                          {"inside", row.in_collective},
                          {"waiting_for", row.waiting_for}};
  }
  return json;
}

Json to_json(const std::string& job, const Board& board) {
  const BoardHeader& header = board.header();
  Json json{{"job", job},
            {"name", header.name},
            {"status", status_text(board)},
            {"run_dir", header.run_dir},
            {"mesh", {{"shape", header.mesh_shape}, {"axes", header.axis_names}}},
            {"workers", header.num_workers},
            {"chips", header.num_chips},
            {"trainer_pid", header.trainer_pid},
            {"actors", Json::array()}};
  for (const ActorRow& row : board.rows()) json["actors"].push_back(to_json(row));
  return json;
}

/// What a device does: the collective it is in, or was in last.
std::string doing(const ActorRow& row) {
  if (!row.last_error.empty()) return row.last_error;
  if (row.collective == 0) return "";
  const std::string which = fmt::format("#{} {}", row.collective, row.collective_name);
  if (!row.in_collective) return "after " + which;
  return row.waiting_for < 0 ? "in " + which
                             : fmt::format("in {}, waits for chip {}", which, row.waiting_for);
}

void print(const std::string& job, const Board& board) {
  Table table({{"actor", Align::right},
               {"kind"},
               {"worker", Align::right},
               {"chip", Align::right},
               {"pid", Align::right},
               {"state"},
               {"step", Align::right},
               {"mailbox", Align::right},
               {"message"},
               {"doing"}});
  const auto number = [](int n) { return n < 0 ? std::string("-") : std::to_string(n); };
  for (const ActorRow& row : board.rows()) {
    table.add({std::to_string(row.index), std::string(to_string(row.kind)), number(row.worker),
               number(row.chip), std::to_string(row.pid), std::string(to_string(row.state)),
               std::to_string(row.step), std::to_string(row.mailbox), row.last_message,
               doing(row)});
  }
  const BoardHeader& header = board.header();
  fmt::print("job {}  {}  {}\nmesh {}  workers {}  chips {}  trainer pid {}\nrun folder {}\n\n",
             visible(job), visible(header.name), status_text(board), visible(mesh_text(header)),
             header.num_workers, header.num_chips, header.trainer_pid, visible(header.run_dir));
  table.print();
}

void print(const Json& json) {
  fmt::print("{}\n", json.dump(1, ' ', false, Json::error_handler_t::replace));
}

Json list_entry(const std::string& job, const Board& board) {
  const BoardHeader& header = board.header();
  return {{"job", job},
          {"name", header.name},
          {"status", status_text(board)},
          {"run_dir", header.run_dir},
          {"trainer_pid", header.trainer_pid}};
}

std::vector<std::string> list_row(const std::string& job, const Board& board) {
  const BoardHeader& header = board.header();
  const std::time_t started = header.started_unix_ns / 1'000'000'000;
  return {job,
          header.name,
          status_text(board),
          std::to_string(header.trainer_pid),
          fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(started)),
          mesh_text(header)};
}

int list_jobs(const Options& options) {
  Json json = Json::array();
  Table table({{"job"}, {"name"}, {"status"}, {"pid", Align::right}, {"started"}, {"mesh"}});
  for (const std::string& job : Board::jobs()) {
    try {
      const Board board = Board::open(job, true);
      if (options.json) {
        json.push_back(list_entry(job, board));
      } else {
        table.add(list_row(job, board));
      }
    } catch (const Error& e) {
      // The job has ended meanwhile, or is only starting.
      if (e.code() != Errc::not_found) say_unreadable(job, e);
    } catch (const std::exception& e) {
      say_unreadable(job, e);
    }
  }
  if (options.json) {
    print(json);
  } else if (table.empty()) {
    fmt::print("no jobs\n");
  } else {
    table.print();
  }
  return 0;
}

int show_job(const std::string& job, const Options& options) {
  try {
    const Board board = Board::open(job, true);
    if (options.json) {
      print(to_json(job, board));
    } else {
      print(job, board);
    }
    return 0;
  } catch (const std::exception& e) {
    say_unreadable(job, e);
    return 1;
  }
}

int run(const Options& options) {
  if (options.job.empty()) return list_jobs(options);
  std::error_code error;
  const bool is_path =
      options.job.find('/') != std::string::npos ||
      (std::filesystem::exists(options.job, error) && find_jobs(options.job).empty());
  if (is_path) {
    return show_tensors(options.job, options.json, options.verify);
  }
  if (options.verify) {
    fmt::print(stderr, "--verify is for the folder of a checkpoint: \"{}\" isn't there\n",
               visible(options.job));
    return 1;
  }
  const auto job = find_job(options.job);
  return job ? show_job(*job, options) : 1;
}

}  // namespace

void add_inspect(CLI::App& app, int& code) {
  auto options = std::make_shared<Options>();
  CLI::App* inspect = app.add_subcommand(
      "inspect", "list jobs, show one from its board, or show the tensors of a checkpoint");
  inspect->add_option(
      "job", options->job,
      "a job's id, the beginning of it, or its name; or the path of a checkpoint or "
      "of safetensors");
  inspect->add_flag("--verify", options->verify,
                    "of a checkpoint: read all of it and compare the checksums");
  inspect->add_flag("--json", options->json, "as JSON");
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
}

}  // namespace weft
