// The data loader with good and with broken files.

#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "examples/layers/idx.hpp"
#include "examples/layers/learner.hpp"

namespace lenet {
namespace {

using Bytes = std::vector<std::uint8_t>;

class Idx : public ::testing::Test {
 protected:
  Idx() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rondo-idx-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Idx() override { std::filesystem::remove_all(folder_); }

  static Bytes header(std::uint32_t magic, const std::vector<std::uint32_t>& dims) {
    Bytes bytes;
    const auto put = [&](std::uint32_t value) {
      for (const int shift : {24, 16, 8, 0}) {
        bytes.push_back(static_cast<std::uint8_t>(value >> static_cast<unsigned>(shift)));
      }
    };
    put(magic);
    for (const std::uint32_t dim : dims) put(dim);
    return bytes;
  }

  std::filesystem::path write(const std::string& name, const Bytes& bytes) {
    auto path = folder_ / name;
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return path;
  }

  // A folder of four files with `train` and `test` samples.
  void write_dataset(std::uint32_t train, std::uint32_t test) {
    for (const auto& [prefix, count] : {std::pair{"train", train}, std::pair{"t10k", test}}) {
      Bytes images = header(0x803, {count, 28, 28});
      images.resize(images.size() + count * kImagePixels, 9);
      Bytes labels = header(0x801, {count});
      for (std::uint32_t i = 0; i < count; ++i) labels.push_back(static_cast<std::uint8_t>(i % 10));
      write(std::string(prefix) + "-images-idx3-ubyte.gz", images);
      write(std::string(prefix) + "-labels-idx1-ubyte.gz", labels);
    }
  }

  template <class Function>
  static void expect_error(Function&& function, const std::string& file, const std::string& what) {
    try {
      function();
      FAIL() << "no error about " << what;
    } catch (const DataError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find(file), std::string::npos) << text;
      EXPECT_NE(text.find(what), std::string::npos) << text;
    }
  }

  std::filesystem::path folder_;
};

TEST_F(Idx, ReadsAGoodFile) {
  Bytes bytes = header(0x802, {2, 3});
  for (std::uint8_t i = 0; i < 6; ++i) bytes.push_back(i);
  const IdxArray array = read_idx(write("good.gz", bytes), 2);
  EXPECT_EQ(array.dims, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(array.values, (Bytes{0, 1, 2, 3, 4, 5}));
}

TEST_F(Idx, ReadsAWholeDataset) {
  write_dataset(30, 20);
  const Dataset data = read_images(folder_);
  EXPECT_EQ(data.train.count(), 30U);
  EXPECT_EQ(data.test.count(), 20U);
  EXPECT_EQ(data.train.input_elems, kImagePixels);
  std::vector<float> image(kImagePixels);
  data.train.read_input(29, image);
  EXPECT_EQ(image, std::vector<float>(kImagePixels, 9.0F / 255.0F));
}

TEST_F(Idx, AMissingFileIsNamedWithTheCure) {
  write_dataset(3, 2);
  std::filesystem::remove(folder_ / "t10k-labels-idx1-ubyte.gz");
  expect_error([&] { read_images(folder_); }, "t10k-labels-idx1-ubyte.gz", "does not exist");
  expect_error([&] { read_images(folder_ / "nowhere"); }, "train-images", "--data");
}

TEST_F(Idx, AWrongMagicNumberIsNamed) {
  const auto file = write("magic.gz", header(0x803, {1}));
  expect_error([&] { read_idx(file, 1); }, "magic.gz", "0x00000803");
}

TEST_F(Idx, AShortHeaderIsNamed) {
  const auto file = write("header.gz", {0, 0, 8});
  expect_error([&] { read_idx(file, 1); }, "header.gz", "truncated within its header");
}

TEST_F(Idx, AHeaderThatClaimsTooMuchIsNotBelieved) {
  // The header claims 4 · 10⁹ images in a file of a few bytes: an error, and no memory is allocated
  // for them.
  const auto file = write("liar.gz", header(0x803, {4000000000U, 28, 28}));
  expect_error([&] { read_idx(file, 3); }, "liar.gz", "holds 0");
  const auto worse = write("worse.gz", header(0x803, {0xFFFFFFFFU, 0xFFFFFFFFU, 0xFFFFFFFFU}));
  expect_error([&] { read_idx(worse, 3); }, "worse.gz", "more values than can be counted");
}

TEST_F(Idx, ValuesBeyondTheHeadersAreNamed) {
  Bytes bytes = header(0x801, {3});
  bytes.insert(bytes.end(), {1, 2, 3, 4});
  const auto file = write("long.gz", bytes);
  expect_error([&] { read_idx(file, 1); }, "long.gz", "more than the 3 values");
}

TEST_F(Idx, ATruncatedGzipFileIsNamed) {
  Bytes bytes = header(0x801, {100000});
  for (std::uint32_t i = 0; i < 100000; ++i) {
    bytes.push_back(static_cast<std::uint8_t>((i * 2654435761U) >> 13U));
  }
  const auto file = write("cut.gz", bytes);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  expect_error([&] { read_idx(file, 1); }, "cut.gz", "truncated");
}

TEST_F(Idx, ACorruptGzipFileIsNamed) {
  Bytes bytes = header(0x801, {100000});
  for (std::uint32_t i = 0; i < 100000; ++i) {
    bytes.push_back(static_cast<std::uint8_t>((i * 2654435761U) >> 13U));
  }
  const auto file = write("bits.gz", bytes);
  std::FILE* raw = std::fopen(file.c_str(), "r+b");
  std::fseek(raw, -8, SEEK_END);  // the checksum
  std::fputc(0x55, raw);
  std::fputc(0xAA, raw);
  std::fclose(raw);
  expect_error([&] { read_idx(file, 1); }, "bits.gz", "corrupt");
}

TEST_F(Idx, ImagesAndLabelsMustBelongTogether) {
  write_dataset(5, 4);
  Bytes labels = header(0x801, {2});
  labels.insert(labels.end(), {0, 1});
  write("train-labels-idx1-ubyte.gz", labels);
  expect_error([&] { read_images(folder_); }, "train-labels", "holds 2 labels");
  labels = header(0x801, {5});
  labels.insert(labels.end(), {0, 1, 10, 3, 4});
  write("train-labels-idx1-ubyte.gz", labels);
  expect_error([&] { read_images(folder_); }, "train-labels", "label number 2 is 10");
  Bytes images = header(0x803, {5, 7, 7});
  images.resize(images.size() + std::size_t{5} * 49);
  write("train-images-idx3-ubyte.gz", images);
  expect_error([&] { read_images(folder_); }, "train-images", "7x7 pixels");
}

}  // namespace
}  // namespace lenet
