#include <weft/tools/weft/inspect.hpp>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <weft/spmd/error.hpp>
#include <weft/transport/board.hpp>

namespace weft {
namespace {

using Json = nlohmann::json;

struct Options {
  std::string job;
  bool json = false;
};

double seconds_since(std::int64_t boottime_ns) {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const std::int64_t now_ns = now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
  return static_cast<double>(now_ns - boottime_ns) / 1e9;
}

bool process_exists(int pid) { return pid > 0 && (::kill(pid, 0) == 0 || errno == EPERM); }

/// "dead" where the board's last word isn't the end, but the trainer's process is gone.
std::string status_text(const Board& board) {
  const JobStatus status = board.status();
  const bool over = status == JobStatus::succeeded || status == JobStatus::failed;
  if (!over && !process_exists(board.header().trainer_pid)) return "dead";
  return std::string(to_string(status));
}

std::string mesh_text(const BoardHeader& header) {
  if (header.mesh_shape.empty()) return "none";
  return Mesh(header.mesh_shape, header.axis_names).to_string();
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

Json to_json(const Board& board) {
  const BoardHeader& header = board.header();
  Json json{{"job", header.job},
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

void print_table(const Board& board) {
  const BoardHeader& header = board.header();
  fmt::print("job {}  {}  {}\nmesh {}  workers {}  chips {}  trainer pid {}\nrun folder {}\n\n",
             header.job, header.name, status_text(board), mesh_text(header), header.num_workers,
             header.num_chips, header.trainer_pid, header.run_dir);
  fmt::print("{:>5} {:8} {:>6} {:>4} {:>8} {:10} {:>8} {:>7} {:10} {}\n", "actor", "kind", "worker",
             "chip", "pid", "state", "step", "mailbox", "message", "doing");
  const auto number = [](int n) { return n < 0 ? std::string("-") : std::to_string(n); };
  for (const ActorRow& row : board.rows()) {
    fmt::print("{:>5} {:8} {:>6} {:>4} {:>8} {:10} {:>8} {:>7} {:10} {}\n", row.index,
               to_string(row.kind), number(row.worker), number(row.chip), row.pid,
               to_string(row.state), row.step, row.mailbox, row.last_message, doing(row));
  }
}

/// Boards that can be read; a job that ends meanwhile is passed over.
std::vector<Board> open_boards() {
  std::vector<Board> boards;
  for (const std::string& job : Board::jobs()) {
    try {
      boards.push_back(Board::open(job, true));
    } catch (const Error& e) {
      if (e.code() != Errc::not_found) fmt::print(stderr, "job {}: {}\n", job, e.what());
    }
  }
  return boards;
}

int list_jobs(const Options& options) {
  const std::vector<Board> boards = open_boards();
  if (options.json) {
    Json json = Json::array();
    for (const Board& board : boards) {
      const BoardHeader& header = board.header();
      json.push_back({{"job", header.job},
                      {"name", header.name},
                      {"status", status_text(board)},
                      {"run_dir", header.run_dir},
                      {"trainer_pid", header.trainer_pid}});
    }
    fmt::print("{}\n", json.dump(1, ' ', false, Json::error_handler_t::replace));
    return 0;
  }
  if (boards.empty()) {
    fmt::print("no jobs\n");
    return 0;
  }
  fmt::print("{:32}  {:12} {:10} {:>8}  {:20} {}\n", "job", "name", "status", "pid", "started",
             "mesh");
  for (const Board& board : boards) {
    const BoardHeader& header = board.header();
    const std::time_t started = header.started_unix_ns / 1'000'000'000;
    fmt::print("{:32}  {:12} {:10} {:>8}  {:%Y-%m-%d %H:%M:%S}  {}\n", header.job, header.name,
               status_text(board), header.trainer_pid, fmt::localtime(started), mesh_text(header));
  }
  return 0;
}

/// The one job whose id begins with, or whose name is, what was asked for.
std::optional<std::string> find_job(const std::string& asked) {
  std::vector<std::string> found;
  for (const Board& board : open_boards()) {
    const BoardHeader& header = board.header();
    if (header.job.starts_with(asked) || header.name == asked) found.push_back(header.job);
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    fmt::print(stderr, "no job \"{}\": `weft inspect` lists those there are\n", asked);
  } else {
    fmt::print(stderr, "\"{}\" fits {} jobs, give more of the id: {}\n", asked, found.size(),
               fmt::join(found, ", "));
  }
  return {};
}

int run(const Options& options) {
  if (options.job.empty()) return list_jobs(options);
  const auto job = find_job(options.job);
  if (!job) return 1;
  const Board board = Board::open(*job, true);
  if (options.json) {
    fmt::print("{}\n", to_json(board).dump(1, ' ', false, Json::error_handler_t::replace));
  } else {
    print_table(board);
  }
  return 0;
}

}  // namespace

void add_inspect(CLI::App& app, int& code) {
  auto options = std::make_shared<Options>();
  CLI::App* inspect = app.add_subcommand("inspect", "list jobs, or show one from its board");
  inspect->add_option("job", options->job, "a job's id, the beginning of it, or its name");
  inspect->add_flag("--json", options->json, "as JSON");
  inspect->callback([options, &code] { code = run(*options); });
}

}  // namespace weft
