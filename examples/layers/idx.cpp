#include "idx.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>

namespace lenet {
namespace {

struct CloseGz {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

// Reads a file to its end, whether gzipped or not, and knows its name for messages.
class Reader {
 public:
  explicit Reader(std::filesystem::path file) : path_(std::move(file)) {
    if (!std::filesystem::exists(path_)) {
      fail(
          "does not exist; install the Debian package dataset-fashion-mnist, or name the folder "
          "that holds the files with --data");
    }
    file_.reset(gzopen(path_.c_str(), "rb"));
    if (!file_) fail("cannot be opened");
  }

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw DataError(
        fmt::format("{}: {}", path_.string(), fmt::format(format, std::forward<Args>(args)...)));
  }

  // Up to `bytes` bytes; fewer only at the end.
  std::size_t read(std::uint8_t* to, std::size_t bytes) {
    constexpr std::size_t kMost = 1U << 30U;
    const int got = gzread(file_.get(), to, static_cast<unsigned>(std::min(bytes, kMost)));
    int code = Z_OK;
    const char* text = gzerror(file_.get(), &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)) {
      fail("is corrupt: {}", text);
    }
    if (code == Z_BUF_ERROR) fail("is truncated: the compressed data end too early");
    return static_cast<std::size_t>(got);
  }

  std::uint32_t read_big_endian() {
    std::array<std::uint8_t, 4> bytes{};
    if (read(bytes.data(), bytes.size()) != bytes.size()) fail("is truncated within its header");
    std::uint32_t value = 0;
    for (const std::uint8_t byte : bytes) value = value << 8U | byte;
    return value;
  }

 private:
  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, CloseGz> file_;
};

std::vector<std::uint8_t> read_values(Reader& reader, std::uint64_t claimed) {
  constexpr std::size_t kPiece = 1U << 20U;
  std::vector<std::uint8_t> values;
  for (;;) {
    const std::size_t before = values.size();
    values.resize(before + kPiece);
    const std::size_t got = reader.read(values.data() + before, kPiece);
    values.resize(before + got);
    if (values.size() > claimed) {
      reader.fail("holds more than the {} values that its header claims", claimed);
    }
    if (got == 0) break;
  }
  if (values.size() < claimed) {
    reader.fail("is truncated: its header claims {} values, but it holds {}", claimed,
                values.size());
  }
  return values;
}

Samples read_samples(const std::filesystem::path& directory, const std::string& prefix) {
  const auto images_file = directory / (prefix + "-images-idx3-ubyte.gz");
  const auto labels_file = directory / (prefix + "-labels-idx1-ubyte.gz");
  IdxArray images = read_idx(images_file, 3);
  IdxArray labels = read_idx(labels_file, 1);
  if (images.dims[1] != kImageSide || images.dims[2] != kImageSide) {
    throw DataError(fmt::format("{}: images are {}x{} pixels, not {}x{}", images_file.string(),
                                images.dims[1], images.dims[2], kImageSide, kImageSide));
  }
  if (images.dims[0] != labels.dims[0]) {
    throw DataError(fmt::format("{} holds {} labels, but {} holds {} images", labels_file.string(),
                                labels.dims[0], images_file.string(), images.dims[0]));
  }
  const auto wrong = std::find_if(labels.values.begin(), labels.values.end(),
                                  [](std::uint8_t label) { return label >= kClasses; });
  if (wrong != labels.values.end()) {
    throw DataError(fmt::format("{}: label number {} is {}, not below {}", labels_file.string(),
                                wrong - labels.values.begin(), *wrong, kClasses));
  }
  return samples_of_bytes(kImagePixels, std::move(images.values), std::move(labels.values));
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& file, std::size_t dimensions) {
  constexpr std::uint32_t kUnsignedBytes = 0x08;
  Reader reader(file);
  const std::uint32_t magic = reader.read_big_endian();
  const auto expected = static_cast<std::uint32_t>(kUnsignedBytes << 8U | dimensions);
  if (magic != expected) {
    reader.fail(
        "is not an IDX file of unsigned bytes with {} dimensions: it begins with {:#010x}, "
        "not {:#010x}",
        dimensions, magic, expected);
  }
  IdxArray array;
  std::uint64_t claimed = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    array.dims.push_back(reader.read_big_endian());
    if (array.dims.back() != 0 && claimed > UINT64_MAX / array.dims.back()) {
      reader.fail("claims more values than can be counted");
    }
    claimed *= array.dims.back();
  }
  array.values = read_values(reader, claimed);
  return array;
}

Dataset read_images(const std::filesystem::path& directory) {
  return {read_samples(directory, "train"), read_samples(directory, "t10k")};
}

}  // namespace lenet
