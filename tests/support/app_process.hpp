#pragma once
/// A program that runs a job, watched by a test; and what a job must not leave behind.

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace weft::testing {

class AppProcess {
 public:
  /// The program's path and its arguments; a word {json} stands for the file that result() reads.
  /// `variables` ("NAME=value") are added to its environment.
  explicit AppProcess(std::vector<std::string> words,
                      const std::vector<std::string>& variables = {});
  ~AppProcess();
  AppProcess(const AppProcess&) = delete;
  AppProcess& operator=(const AppProcess&) = delete;

  pid_t pid() const { return pid_; }
  /// Reads its output up to a line that has `text`, and returns that line; "" if it ends before.
  std::string wait_for_line(const std::string& text);
  /// The id in its line "job ...".
  const std::string& job();
  /// Its next write to stdout would have to wait for a reader.
  bool output_blocked() const;
  /// Reads no more of its output.
  void close_output();
  /// Waits for its end; the rest of its output is in output(). Returns the exit code, 128 + signal.
  int wait();
  const std::string& output() const { return output_; }
  /// What it wrote to {json}; null if nothing.
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

/// Calls `condition` until it holds, giving way to other processes in between.
void wait_until(const std::function<bool()>& condition);

/// Processes that have WEFT_JOB_ID=job in their environment.
std::vector<pid_t> processes_of(const std::string& job);

/// Fails the test if the job has left a process, a shared-memory segment or a control folder.
void expect_nothing_left(const std::string& job);
/// The result of a job that must end well and leave nothing.
nlohmann::json finished(AppProcess& app);

}  // namespace weft::testing
