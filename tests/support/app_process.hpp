#pragma once
/// Runs a program with a job and watches it for a test; checks what a job must not leave behind.

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace weft::testing {

class AppProcess {
 public:
  /// Takes the program's path and its arguments; a word {json} stands for the file that result()
  /// reads. `variables` ("NAME=value") are added to its environment.
  explicit AppProcess(std::vector<std::string> words,
                      const std::vector<std::string>& variables = {});
  ~AppProcess();
  AppProcess(const AppProcess&) = delete;
  AppProcess& operator=(const AppProcess&) = delete;

  pid_t pid() const { return pid_; }
  /// Reads its output up to a line that contains `text`, and returns that line; "" if the output
  /// ends first.
  std::string wait_for_line(const std::string& text);
  /// Returns the id in its line "job ...".
  const std::string& job();
  /// Returns whether its next write to stdout would have to wait for a reader.
  bool output_blocked() const;
  /// Stops reading its output.
  void close_output();
  /// Waits for its end; output() then has the rest of its output. Returns the exit code, or 128 +
  /// signal.
  int wait();
  const std::string& output() const { return output_; }
  /// Returns what it wrote to {json}; null if nothing.
  nlohmann::json result() const;
  const std::string& json_path() const { return json_; }

 private:
  bool read_more();

  pid_t pid_ = -1;
  int out_ = -1;
  std::size_t consumed_ = 0;
  std::string output_;
  std::string json_;
  std::string job_;
};

/// Calls `condition` until it holds, and yields to other processes in between.
void wait_until(const std::function<bool()>& condition);

/// Returns the processes that have WEFT_JOB_ID=job in their environment.
std::vector<pid_t> processes_of(const std::string& job);

/// Fails the test if the job has left a process, a shared-memory segment or a control folder.
void expect_nothing_left(const std::string& job);
/// Returns the result of a job that must end well and leave nothing behind.
nlohmann::json finished(AppProcess& app);

}  // namespace weft::testing
