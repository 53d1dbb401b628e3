#pragma once
/// Runs a program that starts a job and watches it for a test; checks that a job leaves nothing
/// behind.

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace weft::testing {

class AppProcess {
 public:
  /// Starts a program. `words` are its path and its arguments; {json} in them stands for the file
  /// that result() reads. `variables` ("NAME=value") are added to its environment. Throws
  /// std::system_error if the program can't be run.
  explicit AppProcess(std::vector<std::string> words,
                      const std::vector<std::string>& variables = {});
  ~AppProcess();
  AppProcess(const AppProcess&) = delete;
  AppProcess& operator=(const AppProcess&) = delete;

  pid_t pid() const { return pid_; }
  /// Reads the program's output up to a line that contains `text`, and returns this line; "" if the
  /// output ends first.
  std::string wait_for_line(const std::string& text);
  /// Returns the id in the program's line "job ...".
  const std::string& job();
  /// Returns whether the program's next write to stdout would have to wait for a reader.
  bool output_blocked() const;
  /// Closes this end of the program's stdout.
  void close_output();
  /// Waits for the program's end, after which output() has everything that the program wrote.
  /// Returns the exit code, or 128 + the signal that killed it.
  int wait();
  const std::string& output() const { return output_; }
  /// Returns the JSON that the program wrote to {json}; null if it wrote nothing.
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

/// Calls `condition` until it is true, and yields to other processes in between.
void wait_until(const std::function<bool()>& condition);

/// Returns the processes that have WEFT_JOB_ID=job in their environment.
std::vector<pid_t> processes_of(const std::string& job);

/// Fails the test if the job has left a process, a shared-memory segment or a control folder.
void expect_nothing_left(const std::string& job);
/// Waits for a job that must end well and leave nothing behind, and returns its result.
nlohmann::json finished(AppProcess& app);

}  // namespace weft::testing
