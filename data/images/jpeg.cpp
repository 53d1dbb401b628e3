#include "data/images/jpeg.hpp"

#include <array>
#include <csetjmp>
#include <cstdio>
#include <string>

#include <jerror.h>
#include <jpeglib.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

/// The maximum number of pixels per byte of a file, because each block of 64 pixels needs at least
/// one bit.
constexpr std::int64_t kPixelsPerByteMax = 8 * 64;
/// The maximum number of scans in a progressive picture. Each scan covers all of the picture;
/// encoders make about ten scans.
constexpr int kScansMax = 100;

/// The state that libjpeg's callbacks share. A callback finds this struct by cinfo.err, which
/// points to its first member `manager`.
struct Diagnosis {
  jpeg_error_mgr manager{};
  std::jmp_buf jump{};
  std::array<char, JMSG_LENGTH_MAX> message{};
  bool is_unsupported = false;
};

[[noreturn]] void leave(j_common_ptr cinfo) {
  auto* const diagnosis = reinterpret_cast<Diagnosis*>(cinfo->err);
  const int code = diagnosis->manager.msg_code;
  diagnosis->is_unsupported = code == JERR_ARITH_NOTIMPL || code == JERR_SOF_UNSUPPORTED ||
                              code == JERR_BAD_PRECISION || code == JERR_CONVERSION_NOTIMPL;
  diagnosis->manager.format_message(cinfo, diagnosis->message.data());
  std::longjmp(diagnosis->jump, 1);
}

/// Makes an error of a warning after which pixels are wrong. Ignores other warnings, such as that
/// of bytes between two markers, because they occur in files that other programs show correctly.
void warn(j_common_ptr cinfo, int level) {
  if (level >= 0) return;
  switch (cinfo->err->msg_code) {
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC: leave(cinfo);
    default: break;
  }
}

void limit_scans(j_common_ptr cinfo) {
  if (!cinfo->is_decompressor) return;
  auto* const decompressor = reinterpret_cast<j_decompress_ptr>(cinfo);
  if (decompressor->input_scan_number <= kScansMax) return;
  auto* const diagnosis = reinterpret_cast<Diagnosis*>(cinfo->err);
  std::snprintf(diagnosis->message.data(), diagnosis->message.size(), "has more than %d scans",
                kScansMax);
  std::longjmp(diagnosis->jump, 1);
}

class Decompressor {
 public:
  explicit Decompressor(std::span<const std::byte> file) {
    cinfo_.err = jpeg_std_error(&diagnosis_.manager);
    diagnosis_.manager.error_exit = leave;
    diagnosis_.manager.emit_message = warn;
    progress_.progress_monitor = limit_scans;
    run([&] {
      jpeg_create_decompress(&cinfo_);
      cinfo_.progress = &progress_;
      jpeg_mem_src(&cinfo_, reinterpret_cast<const unsigned char*>(file.data()), file.size());
      (void)jpeg_read_header(&cinfo_, TRUE);
    });
    if (cinfo_.arith_code) {
      jpeg_destroy_decompress(&cinfo_);
      fail(Errc::version, "JPEG: is arithmetically coded, which weft doesn't read");
    }
    try {
      check_picture_size(cinfo_.image_width, cinfo_.image_height, file.size(), kPixelsPerByteMax);
    } catch (...) {
      jpeg_destroy_decompress(&cinfo_);
      throw;
    }
  }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  ~Decompressor() { jpeg_destroy_decompress(&cinfo_); }

  jpeg_decompress_struct& cinfo() { return cinfo_; }

  /// Runs `calls`, which must not create objects with a destructor, because libjpeg may leave them
  /// by longjmp.
  template <typename Calls>
  void run(const Calls& calls) {
    if (try_run(calls)) return;
    const std::string message = diagnosis_.message.data();
    jpeg_destroy_decompress(&cinfo_);  // the destructor may call this again
    fail(diagnosis_.is_unsupported ? Errc::version : Errc::corrupt, "JPEG: {}", message);
  }

 private:
  template <typename Calls>
  bool try_run(const Calls& calls) {
    if (setjmp(diagnosis_.jump) != 0) return false;
    calls();
    return true;
  }

  Diagnosis diagnosis_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct cinfo_{};
};

/// Converts CMYK pixels, in which 0 means no ink, to RGB. With `is_complement`, as in Adobe's
/// files, 255 means no ink.
void make_rgb(const std::uint8_t* cmyk, std::int64_t count, bool is_complement, std::uint8_t* rgb) {
  for (std::int64_t i = 0; i < count; ++i, cmyk += 4, rgb += 3) {
    const unsigned flip = is_complement ? 0 : 255;
    const unsigned white = cmyk[3] ^ flip;
    for (int c = 0; c < 3; ++c) {
      rgb[c] = static_cast<std::uint8_t>(((cmyk[c] ^ flip) * white + 127) / 255);
    }
  }
}

/// Returns the color space to which libjpeg converts pixels. For CMYK this is CMYK, which it can't
/// convert.
J_COLOR_SPACE output_space(J_COLOR_SPACE stored, bool gray) {
  if (stored == JCS_CMYK || stored == JCS_YCCK) return JCS_CMYK;
  return gray || stored == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
}

}  // namespace

PixelSize jpeg_size(std::span<const std::byte> file) {
  Decompressor decompressor(file);
  return {decompressor.cinfo().image_width, decompressor.cinfo().image_height};
}

Picture decode_jpeg(std::span<const std::byte> file, bool gray, int shrink) {
  Decompressor decompressor(file);
  jpeg_decompress_struct& cinfo = decompressor.cinfo();
  cinfo.scale_num = 1;
  cinfo.scale_denom = static_cast<unsigned>(shrink);
  cinfo.out_color_space = output_space(cinfo.jpeg_color_space, gray);
  decompressor.run([&] { (void)jpeg_start_decompress(&cinfo); });

  const bool is_cmyk = cinfo.out_color_space == JCS_CMYK;
  Picture picture{.size = {cinfo.output_width, cinfo.output_height},
                  .channels = cinfo.out_color_space == JCS_GRAYSCALE ? 1 : 3};
  const std::size_t row_bytes =
      static_cast<std::size_t>(picture.size.width) * static_cast<std::size_t>(picture.channels);
  picture.bytes = std::make_unique_for_overwrite<std::uint8_t[]>(
      row_bytes * static_cast<std::size_t>(picture.size.height));
  const auto cmyk = std::make_unique_for_overwrite<std::uint8_t[]>(
      is_cmyk ? 4 * static_cast<std::size_t>(picture.size.width) : 0);
  decompressor.run([&] {
    while (cinfo.output_scanline < cinfo.output_height) {
      std::uint8_t* const row = picture.bytes.get() + cinfo.output_scanline * row_bytes;
      std::uint8_t* read = is_cmyk ? cmyk.get() : row;
      (void)jpeg_read_scanlines(&cinfo, &read, 1);
      if (is_cmyk) make_rgb(read, picture.size.width, cinfo.saw_Adobe_marker != 0, row);
    }
    (void)jpeg_finish_decompress(&cinfo);
  });
  if (gray) make_gray(picture);
  return picture;
}

}  // namespace weft
