#include "inspect/process/stack.hpp"

#ifdef WEFT_HAS_LIBDW

#include <cxxabi.h>
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "data/files/utf8.hpp"
#include "inspect/process/held_thread.hpp"

namespace weft {
namespace {

constexpr std::size_t kFrameCountMax = 64;

/// The functions of libdw. libdw is loaded when a stack is first read, so that programs that only
/// train don't load it.
struct LibDw {
  decltype(&::dwfl_begin) begin;
  decltype(&::dwfl_end) end;
  decltype(&::dwfl_linux_proc_report) linux_proc_report;
  decltype(&::dwfl_linux_proc_maps_report) linux_proc_maps_report;
  decltype(&::dwfl_linux_proc_find_elf) linux_proc_find_elf;
  decltype(&::dwfl_standard_find_debuginfo) standard_find_debuginfo;
  decltype(&::dwfl_report_end) report_end;
  decltype(&::dwfl_attach_state) attach_state;
  decltype(&::dwfl_getthread_frames) getthread_frames;
  decltype(&::dwfl_thread_tid) thread_tid;
  decltype(&::dwfl_thread_dwfl) thread_dwfl;
  decltype(&::dwfl_thread_state_registers) thread_state_registers;
  decltype(&::dwfl_frame_thread) frame_thread;
  decltype(&::dwfl_frame_pc) frame_pc;
  decltype(&::dwfl_addrmodule) addrmodule;
  decltype(&::dwfl_module_addrname) module_addrname;
  decltype(&::dwfl_module_getsrc) module_getsrc;
  decltype(&::dwfl_module_info) module_info;
  decltype(&::dwfl_lineinfo) lineinfo;
  bool loaded = false;

  static const LibDw& get() {
    static const LibDw functions;
    return functions;
  }

 private:
  LibDw() {
    void* const library = ::dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    loaded = true;
    const auto find = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      loaded = loaded && function != nullptr;
    };
    find(begin, "dwfl_begin");
    find(end, "dwfl_end");
    find(linux_proc_report, "dwfl_linux_proc_report");
    find(linux_proc_maps_report, "dwfl_linux_proc_maps_report");
    find(linux_proc_find_elf, "dwfl_linux_proc_find_elf");
    find(standard_find_debuginfo, "dwfl_standard_find_debuginfo");
    find(report_end, "dwfl_report_end");
    find(attach_state, "dwfl_attach_state");
    find(getthread_frames, "dwfl_getthread_frames");
    find(thread_tid, "dwfl_thread_tid");
    find(thread_dwfl, "dwfl_thread_dwfl");
    find(thread_state_registers, "dwfl_thread_state_registers");
    find(frame_thread, "dwfl_frame_thread");
    find(frame_pc, "dwfl_frame_pc");
    find(addrmodule, "dwfl_addrmodule");
    find(module_addrname, "dwfl_module_addrname");
    find(module_getsrc, "dwfl_module_getsrc");
    find(module_info, "dwfl_module_info");
    find(lineinfo, "dwfl_lineinfo");
  }
};

/// The copied threads that libdw's callbacks read.
struct Copied {
  int pid = 0;  ///< 0 if the process is gone
  std::vector<HeldThread> threads;
  std::string maps{};  ///< only for a process that is gone

  const HeldThread* find(pid_t tid) const {
    const auto found = std::ranges::find(threads, tid, &HeldThread::tid);
    return found == threads.end() ? nullptr : &*found;
  }
};

bool get_thread(Dwfl*, pid_t tid, void* copied, void** thread) {
  *thread = const_cast<HeldThread*>(static_cast<Copied*>(copied)->find(tid));
  return *thread != nullptr;
}

/// Returns no thread, because this program names the threads to unwind.
pid_t next_thread(Dwfl*, void*, void**) { return 0; }

bool read_memory(Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* copied) {
  const auto& all = *static_cast<Copied*>(copied);
  std::uint64_t value = 0;
  const bool read = std::ranges::any_of(
      all.threads, [&](const HeldThread& thread) { return thread.read(all.pid, address, value); });
  *word = value;
  return read;
}

bool set_registers(Dwfl_Thread* thread, void* held) {
#ifdef __x86_64__
  const user_regs_struct& r = static_cast<HeldThread*>(held)->registers;
  // The registers are in DWARF's order.
  const std::array<Dwarf_Word, 17> words{r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi,
                                         r.rbp, r.rsp, r.r8,  r.r9,  r.r10, r.r11,
                                         r.r12, r.r13, r.r14, r.r15, r.rip};
  return LibDw::get().thread_state_registers(thread, 0, words.size(), words.data());
#else
  return false;
#endif
}

std::string demangled(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = as_utf8(status == 0 ? text : name);
  std::free(text);
  return result;
}

std::string last_part(const char* path) {
  const std::string_view text = path != nullptr ? path : "";
  return as_utf8(text.substr(text.rfind('/') + 1));
}

StackFrame frame_at(Dwfl* session, Dwarf_Addr address) {
  const LibDw& dw = LibDw::get();
  Dwfl_Module* module = dw.addrmodule(session, address);
  StackFrame found{.function = "?"};
  if (module != nullptr) {
    const char* name = dw.module_addrname(module, address);
    if (name != nullptr) found.function = demangled(name);
    found.object = last_part(
        dw.module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr));
    if (Dwfl_Line* line = dw.module_getsrc(module, address)) {
      found.file = last_part(dw.lineinfo(line, nullptr, &found.line, nullptr, nullptr, nullptr));
    }
  }
  return found;
}

int add_frame(Dwfl_Frame* frame, void* result) {
  const LibDw& dw = LibDw::get();
  auto& frames = *static_cast<std::vector<StackFrame>*>(result);
  Dwarf_Addr address = 0;
  bool exact = false;
  if (!dw.frame_pc(frame, &address, &exact)) return DWARF_CB_ABORT;
  if (!exact) --address;  // so that it is the address of the call, not the return address
  frames.push_back(frame_at(dw.thread_dwfl(dw.frame_thread(frame)), address));
  return frames.size() < kFrameCountMax ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/// libdw's session with the files of a process.
class Session {
 public:
  Session() : dw_(LibDw::get()) {
    callbacks_.find_elf = dw_.linux_proc_find_elf;
    callbacks_.find_debuginfo = dw_.standard_find_debuginfo;
    session_ = dw_.begin(&callbacks_);
  }
  ~Session() {
    if (session_ != nullptr) dw_.end(session_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Dwfl* get() const { return session_; }

  bool report(int pid) const { return ends(dw_.linux_proc_report(session_, pid)); }
  bool report(std::string& maps) const {
    std::FILE* const file = ::fmemopen(maps.data(), maps.size(), "r");
    if (file == nullptr) return false;
    const bool good = ends(dw_.linux_proc_maps_report(session_, file));
    std::fclose(file);
    return good;
  }

 private:
  bool ends(int error) const {
    return error == 0 && dw_.report_end(session_, nullptr, nullptr) == 0;
  }

  const LibDw& dw_;
  Dwfl_Callbacks callbacks_{};
  Dwfl* session_ = nullptr;
};

/// Unwinds copied stacks and names their frames.
class Unwinder {
 public:
  explicit Unwinder(Copied& copied) {
    if (session_.get() == nullptr) return;
    static const Dwfl_Thread_Callbacks thread_callbacks{next_thread,   get_thread, read_memory,
                                                        set_registers, nullptr,    nullptr};
    // libdw needs a process number even for a process that is gone, but it only passes the number
    // back.
    const int pid = copied.pid != 0 ? copied.pid : copied.threads.front().tid;
    const bool reported =
        copied.pid != 0 ? session_.report(copied.pid) : session_.report(copied.maps);
    ready_ = reported && dw_.attach_state(session_.get(), nullptr, pid, &thread_callbacks, &copied);
  }

  std::vector<StackFrame> unwind(int tid) const {
    std::vector<StackFrame> frames;
    if (ready_) dw_.getthread_frames(session_.get(), tid, add_frame, &frames);
    return frames;
  }

 private:
  const LibDw& dw_ = LibDw::get();
  Session session_;
  bool ready_ = false;
};

}  // namespace

std::vector<StackFrame> name_calls(std::span<const std::uintptr_t> returns) {
  std::vector<StackFrame> frames;
  if (returns.empty() || !LibDw::get().loaded) return frames;
  const Session session;
  if (session.get() == nullptr || !session.report(::getpid())) return frames;
  for (const std::uintptr_t address : returns) {
    // The return address - 1 is in the call.
    frames.push_back(frame_at(session.get(), address - 1));
  }
  return frames;
}

std::vector<ThreadStack> read_stacks(int pid, std::span<const int> tids) {
  std::vector<ThreadStack> stacks;
  if (!LibDw::get().loaded) {
    for (const int tid : tids)
      stacks.push_back({.tid = tid, .why_not = "libdw.so.1 isn't installed"});
    return stacks;
  }
  Copied copied{.pid = pid, .threads = hold_threads(pid, tids)};
  const Unwinder unwinder(copied);
  for (const HeldThread& thread : copied.threads) {
    ThreadStack& stack =
        stacks.emplace_back(ThreadStack{.tid = thread.tid, .why_not = thread.why_not});
    if (!thread.why_not.empty()) continue;
    stack.frames = unwinder.unwind(thread.tid);
    if (stack.frames.empty()) stack.why_not = "the files of its program can't be read";
  }
  return stacks;
}

ThreadStack read_kept_stack(const KeptThread& kept) {
  ThreadStack stack{.tid = kept.tid};
#ifdef __x86_64__
  if (!LibDw::get().loaded) {
    stack.why_not = "libdw.so.1 isn't installed";
    return stack;
  }
  const auto& w = kept.registers;
  HeldThread thread{.tid = kept.tid,
                    .stack_begin = kept.stack_begin,
                    .stack = {kept.stack.begin(), kept.stack.end()}};
  user_regs_struct& r = thread.registers;
  r.rax = w[0], r.rdx = w[1], r.rcx = w[2], r.rbx = w[3], r.rsi = w[4], r.rdi = w[5];
  r.rbp = w[6], r.rsp = w[7], r.r8 = w[8], r.r9 = w[9], r.r10 = w[10], r.r11 = w[11];
  r.r12 = w[12], r.r13 = w[13], r.r14 = w[14], r.r15 = w[15], r.rip = w[16];
  Copied copied{.threads = {std::move(thread)}, .maps = kept.maps};
  stack.frames = Unwinder(copied).unwind(kept.tid);
  if (stack.frames.empty()) stack.why_not = "the files of its program can't be read";
#else
  stack.why_not = "stacks are kept on x86-64 only";
#endif
  return stack;
}

}  // namespace weft

#else

namespace weft {

std::vector<ThreadStack> read_stacks(int, std::span<const int> tids) {
  std::vector<ThreadStack> stacks;
  for (const int tid : tids) {
    stacks.push_back({.tid = tid, .why_not = "this weft was built without libdw (libdw-dev)"});
  }
  return stacks;
}

std::vector<StackFrame> name_calls(std::span<const std::uintptr_t>) { return {}; }

ThreadStack read_kept_stack(const KeptThread& kept) {
  return {.tid = kept.tid, .why_not = "this weft was built without libdw (libdw-dev)"};
}

}  // namespace weft

#endif
