// Ranks that were given different options or data train nothing; files that cannot be written leave
// nothing behind.

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/errors.hpp>

#include "examples/layers/equal_ranks.hpp"
#include "examples/layers/replace_file.hpp"
#include "tests/support/ranks.hpp"

namespace lenet {
namespace {

// What `check` throws on each rank, one text for all.
template <class Check>
std::string error_of_ranks(int size, Check check) {
  std::vector<std::string> texts(static_cast<std::size_t>(size));
  rondo::test::run_ranks(size, {}, [&](rondo::Communicator& comm) {
    try {
      check(comm);
    } catch (const rondo::UsageError& error) {
      texts[static_cast<std::size_t>(comm.rank())] = error.what();
    }
    comm.barrier();  // the communicator goes on
  });
  for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
  return texts[0];
}

TEST(EqualRanks, NameTheOptionAndTheRanks) {
  const std::string text = error_of_ranks(4, [](rondo::Communicator& comm) {
    const bool other = comm.rank() == 1 || comm.rank() == 3;
    require_equal_settings(comm,
                           std::string("epochs=3\nseed=") + (other ? "17" : "1") + "\nlr=0.1\n");
  });
  EXPECT_NE(text.find("--seed=1 on rank 0, --seed=17 on rank 1 (ranks that differ: 1, 3)"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("epochs"), std::string::npos) << text;
}

TEST(EqualRanks, NameEveryOption) {
  const std::string text = error_of_ranks(2, [](rondo::Communicator& comm) {
    require_equal_settings(comm, comm.rank() == 0 ? "a=1\nb=2\n" : "a=2\nb=2\nc=3\n");
  });
  EXPECT_NE(text.find("--a=1"), std::string::npos) << text;
  EXPECT_NE(text.find("--c=3"), std::string::npos) << text;
}

TEST(EqualRanks, WithTheSameGoOn) {
  EXPECT_EQ(error_of_ranks(3, [](auto& comm) { require_equal_settings(comm, "a=1\n"); }), "");
}

Dataset data(std::uint8_t last_byte, std::uint8_t last_label) {
  return {samples_of_bytes(2, {1, 2, 3, 4}, {0, 1}),
          samples_of_bytes(2, {5, last_byte}, {last_label})};
}

TEST(EqualRanks, CompareTheirData) {
  EXPECT_EQ(error_of_ranks(2, [](auto& comm) { require_equal_data(comm, data(6, 1)); }), "");
  for (const bool label : {false, true}) {
    const std::string text = error_of_ranks(3, [&](rondo::Communicator& comm) {
      const bool other = comm.rank() == 2;
      require_equal_data(comm, data(other && !label ? 7 : 6, other && label ? 2 : 1));
    });
    EXPECT_NE(text.find("ranks 2 others than rank 0"), std::string::npos) << text;
  }
}

class ReplaceFile : public testing::Test {
 protected:
  ReplaceFile() {
    std::string folder = "/tmp/rondo-files-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  ~ReplaceFile() override { std::filesystem::remove_all(folder_); }
  static std::string contents(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_),
                                                  std::filesystem::directory_iterator()));
  }
  std::string folder_;
};

TEST_F(ReplaceFile, KeepsTheOldOneWhereTheNewOneHasNoRoom) {
  const std::string file = folder_ + "/state";
  replace_file(file, "old");
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{100, 100};
    ::setrlimit(RLIMIT_FSIZE, &small);
    try {
      replace_file(file, std::string(1000, 'x'));
    } catch (const std::runtime_error& error) {
      ::_exit(std::string(error.what()).find("File too large") != std::string::npos ? 0 : 1);
    }
    ::_exit(2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(contents(file), "old");
  EXPECT_EQ(files(), 1U);
}

TEST_F(ReplaceFile, LetsTheSamePeopleReadIt) {
  const std::string file = folder_ + "/state";
  replace_file(file, "old");
  for (const mode_t mode : {0600U, 0664U}) {
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    replace_file(file, "new");
    struct stat facts{};
    ASSERT_EQ(::stat(file.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777U, mode);
  }
}

TEST_F(ReplaceFile, WritesToAPipeAsItIs) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    replace_file(pipe, "text");
    ::_exit(0);
  }
  EXPECT_EQ(contents(pipe), "text");
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_EQ(files(), 1U);
}

TEST_F(ReplaceFile, LeavesASymbolicLinkALink) {
  std::filesystem::create_directory(folder_ + "/elsewhere");
  std::filesystem::create_symlink("elsewhere/state", folder_ + "/link");
  for (const char* text : {"first", "second"}) {
    replace_file(folder_ + "/link", text);
    EXPECT_TRUE(std::filesystem::is_symlink(folder_ + "/link"));
    EXPECT_EQ(contents(folder_ + "/elsewhere/state"), text);
  }
  EXPECT_EQ(files(), 2U);
}

}  // namespace
}  // namespace lenet
