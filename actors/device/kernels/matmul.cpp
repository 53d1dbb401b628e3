#include <weft/actors/device/kernels/matmul.hpp>

#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>

#include <weft/actors/device/kernels/aligned_buffer.hpp>

namespace weft::kernels {

class MatmulStream {
 public:
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

std::shared_ptr<MatmulStream> make_matmul_stream() { return std::make_shared<MatmulStream>(); }

namespace {

/// Debian's oneDNN runs on OpenMP, which would start a thread per core for every chip. The count is
/// OpenMP's setting of the calling thread, read both when a primitive is made and when it runs; it
/// belongs to the program that embeds us, so it is put back.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

dnnl::memory::desc describe(const Shape& batch, const Strides& batch_strides, std::int64_t rows,
                            std::int64_t columns, std::int64_t row, std::int64_t column) {
  dnnl::memory::dims sizes(batch.begin(), batch.end());
  dnnl::memory::dims strides(batch_strides.begin(), batch_strides.begin() + batch.size());
  sizes.insert(sizes.end(), {rows, columns});
  strides.insert(strides.end(), {row, column});
  return {sizes, dnnl::memory::data_type::f32, strides};
}

/// A primitive with the memory objects that it is called with; only their addresses change.
struct Primitive {
  std::shared_ptr<MatmulStream> stream;
  dnnl::matmul matmul;
  dnnl::memory lhs;
  dnnl::memory rhs;
  dnnl::memory result;
  AlignedBuffer scratchpad;
  dnnl::memory scratch;

  Primitive(const dnnl::matmul::primitive_desc& desc, std::shared_ptr<MatmulStream> on)
      : stream(std::move(on)),
        matmul(desc),
        lhs(desc.src_desc(), stream->engine, nullptr),
        rhs(desc.weights_desc(), stream->engine, nullptr),
        result(desc.dst_desc(), stream->engine, nullptr),
        scratchpad(desc.scratchpad_desc().get_size()),
        scratch(desc.scratchpad_desc(), stream->engine, scratchpad.data()) {}

  void run(const std::byte* a, const std::byte* b, std::byte* c) {
    // oneDNN takes every address as writable; it reads the operands only.
    lhs.set_data_handle(const_cast<std::byte*>(a));
    rhs.set_data_handle(const_cast<std::byte*>(b));
    result.set_data_handle(c);
    const std::array<dnnl_exec_arg_t, 4> args{{{DNNL_ARG_SRC, lhs.get()},
                                               {DNNL_ARG_WEIGHTS, rhs.get()},
                                               {DNNL_ARG_DST, result.get()},
                                               {DNNL_ARG_SCRATCHPAD, scratch.get()}}};
    const OneThread one_thread;
    // The C function: its C++ wrapper makes a map and a vector in every call.
    const dnnl_status_t status = dnnl_primitive_execute(matmul.get(), stream->stream.get(),
                                                        static_cast<int>(args.size()), args.data());
    WEFT_CHECK(status == dnnl_success, static_cast<int>(status));
  }
};

}  // namespace

MatmulFunction prepare_matmul(const Matmul& matmul, std::shared_ptr<MatmulStream> stream) {
  Strides result_strides{};
  std::int64_t stride = matmul.m * matmul.n;
  for (int dim = matmul.batch.size() - 1; dim >= 0; --dim) {
    result_strides[static_cast<std::size_t>(dim)] = stride;
    stride *= matmul.batch[dim];
  }
  try {
    const OneThread one_thread;
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    // Or an environment variable could turn f32 into bf16.
    attr.set_fpmath_mode(dnnl::fpmath_mode::strict);
    const dnnl::matmul::desc desc(
        describe(matmul.batch, matmul.lhs.batch, matmul.m, matmul.k, matmul.lhs.row,
                 matmul.lhs.column),
        describe(matmul.batch, matmul.rhs.batch, matmul.k, matmul.n, matmul.rhs.row,
                 matmul.rhs.column),
        describe(matmul.batch, result_strides, matmul.m, matmul.n, matmul.n, 1));
    auto primitive = std::make_shared<Primitive>(
        dnnl::matmul::primitive_desc(desc, attr, stream->engine), stream);
    return [primitive](const std::byte* lhs, const std::byte* rhs, std::byte* result) {
      primitive->run(lhs, rhs, result);
    };
  } catch (const dnnl::error& error) {
    fail(Errc::unavailable, "oneDNN has no matmul of {}x{} by {}x{}: {}", matmul.m, matmul.k,
         matmul.k, matmul.n, error.what());
  }
}

}  // namespace weft::kernels
