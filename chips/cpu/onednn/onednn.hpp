#pragma once
/// Calls oneDNN on a chip's own thread, for the kernels that use it.

#include <array>
#include <initializer_list>
#include <memory>

#include <oneapi/dnnl/dnnl.hpp>

#include <weft/tensor/error.hpp>

#include "chips/cpu/loops/kernel.hpp"

// Functions of libgomp, which Debian's oneDNN uses. They are declared here because clang doesn't
// have their header, which belongs to g++.
extern "C" int omp_get_max_threads() noexcept;
extern "C" void omp_set_num_threads(int) noexcept;

namespace weft::kernels {

class MatmulStream {
 public:
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

/// Limits OpenMP to one thread during its lifetime, because Debian's oneDNN would start a thread
/// per core for every chip. oneDNN reads the calling thread's limit when it makes a primitive and
/// when it runs one. The destructor restores the limit, which the program that embeds weft may have
/// set.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

/// Returns attributes by which the caller provides scratch memory and f32 is computed in f32. An
/// environment variable could otherwise turn f32 into bf16.
inline dnnl::primitive_attr strict_attributes() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_fpmath_mode(dnnl::fpmath_mode::strict);
  return attr;
}

/// Returns oneDNN's type for f32 or bf16.
inline dnnl::memory::data_type data_type_of(DType dtype) {
  return dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

/// Returns the primitive that oneDNN chooses for an operation. oneDNN 2 takes the operation's
/// arguments as a separate descriptor, which oneDNN 3 no longer has.
template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc choose_primitive(const dnnl::engine& engine,
                                                    const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, arguments..., strict_attributes()};
#else
  return {typename Primitive::desc(arguments...), strict_attributes(), engine};
#endif
}

/// Returns the primitive for a gradient. `forward` is what choose_primitive() chose for the forward
/// pass.
template <typename Primitive, typename Forward, typename... Arguments>
typename Primitive::primitive_desc choose_gradient(const dnnl::engine& engine,
                                                   const Forward& forward,
                                                   const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, arguments..., forward, strict_attributes()};
#else
  return {typename Primitive::desc(arguments...), strict_attributes(), engine, forward};
#endif
}

/// A primitive with the memory objects of its arguments: two or three tensors and scratch memory.
/// Between calls, only the addresses of the memory objects change.
class OneDnnCall {
 public:
  struct Argument {
    int name;  ///< DNNL_ARG_...
    dnnl::memory::desc desc;
  };

  OneDnnCall(dnnl::primitive primitive, std::initializer_list<Argument> arguments,
             std::shared_ptr<MatmulStream> stream)
      : stream_(std::move(stream)), primitive_(std::move(primitive)) {
    for (const Argument& argument : arguments) {
      memories_[count_] = dnnl::memory(argument.desc, stream_->engine, nullptr);
      arguments_[count_] = {argument.name, memories_[count_].get()};
      ++count_;
    }
  }
  OneDnnCall(const OneDnnCall&) = delete;
  OneDnnCall& operator=(const OneDnnCall&) = delete;

  /// Runs the primitive. `addresses` has one address per argument, in the constructor's order.
  void run(std::initializer_list<const std::byte*> addresses) {
    const OneThread one_thread;
    std::size_t i = 0;
    for (const std::byte* address : addresses) {
      // oneDNN takes every address as writable, but it only reads the operands.
      memories_[i++].set_data_handle(const_cast<std::byte*>(address));
    }
    // Calls the C function, because the C++ wrapper makes a map and a vector in every call.
    const dnnl_status_t status = dnnl_primitive_execute(
        primitive_.get(), stream_->stream.get(), static_cast<int>(count_), arguments_.data());
    WEFT_CHECK(status == dnnl_success, static_cast<int>(status));
  }

 private:
  std::shared_ptr<MatmulStream> stream_;
  dnnl::primitive primitive_;
  std::array<dnnl::memory, 4> memories_;
  std::array<dnnl_exec_arg_t, 4> arguments_{};
  std::size_t count_ = 0;
};

}  // namespace weft::kernels
