// What ranks that meet say to each other, and the texts that lead them to each other.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/errors.hpp>

#include "base/put.hpp"
#include "bootstrap/contact.hpp"
#include "bootstrap/handshake.hpp"
#include "bootstrap/store_url.hpp"

namespace rondo::detail {
namespace {

template <class T>
std::vector<std::byte> bytes_of(const T& message) {
  const auto bytes = std::as_bytes(std::span(&message, 1));
  return {bytes.begin(), bytes.end()};
}

// Gives the interview these bytes, `piece` at a time, as long as it takes any. Returns its last
// reply.
std::optional<Reply> say(ServerHandshake& interview, std::vector<std::byte> bytes,
                         std::size_t piece) {
  std::optional<Reply> last;
  while (!bytes.empty() && !interview.room().empty()) {
    const std::span<std::byte> room = interview.room();
    const std::size_t count = std::min({piece, bytes.size(), room.size()});
    std::copy_n(bytes.begin(), count, room.begin());
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
    if (const std::optional<Reply> reply = interview.took(count)) last = reply;
  }
  return last;
}

Hello hello_of(int rank, int size, const std::string& secret, const Introduction& mine,
               const Reply& firsts) {
  Hello hello{rank, size, 0, {}, {}};
  hello.proof = prove_for(Speaker::rank, secret, mine.nonce, firsts.introduction.nonce, rank, size);
  return hello;
}

TEST(Handshake, ARankIsKnownHoweverItsBytesArrive) {
  for (const std::string secret : {"", "open sesame"}) {
    if (!secret.empty() && !can_prove()) continue;
    for (const std::size_t piece : {1U, 7U, 1000U}) {
      ServerHandshake interview(secret, {}, introduce(!secret.empty()));
      const Introduction mine = introduce(!secret.empty());
      const std::optional<Reply> introduced = say(interview, bytes_of(mine), piece);
      ASSERT_TRUE(introduced);
      EXPECT_EQ(objection_to(introduced->introduction, mine), "");
      EXPECT_EQ(interview.hello(), nullptr);
      const Hello hello = hello_of(5, 9, secret, mine, *introduced);
      const std::optional<Reply> welcome = say(interview, bytes_of(hello), piece);
      ASSERT_TRUE(welcome);
      EXPECT_EQ(welcome->kind, Reply::Kind::welcome);
      ASSERT_NE(interview.hello(), nullptr);
      EXPECT_EQ(interview.hello()->rank, 5);
      EXPECT_EQ(interview.hello()->size, 9);
      EXPECT_TRUE(same(welcome->proof, prove_for(Speaker::first, secret, mine.nonce,
                                                 introduced->introduction.nonce, 5, 9)));
      EXPECT_TRUE(interview.room().empty());
    }
  }
}

TEST(Handshake, BothSidesSayWhatDiffers) {
  const auto expect = [](const Introduction& theirs, const std::string& part) {
    const Introduction mine = introduce(false);
    EXPECT_NE(objection_to(theirs, mine).find(part), std::string::npos)
        << objection_to(theirs, mine);
    ServerHandshake interview("", {}, mine);
    say(interview, bytes_of(theirs), 3);
    EXPECT_NE(interview.objection().find(part), std::string::npos) << interview.objection();
    EXPECT_TRUE(interview.room().empty());
  };
  Introduction theirs = introduce(false);
  theirs.byte_order = 0x04030201;
  expect(theirs, "another byte order");
  theirs = introduce(false);
  put(theirs.version, "9.8.7");
  expect(theirs, "it is Rondo 9.8.7, and this is Rondo ");
  theirs.version.fill('x');  // no zero at its end
  expect(theirs, "it is Rondo xxxxxxxxxxxxxxxx, and");
  expect(introduce(true), "was given a secret, and this process none");
  theirs = introduce(false);
  theirs.magic = {'G', 'E', 'T', ' ', '/', ' ', 'H', 'T'};
  expect(theirs, "does not speak Rondo's protocol");
}

TEST(Handshake, AStrangerIsKnownByItsFirstBytes) {
  ServerHandshake interview("", {}, introduce(false));
  say(interview, bytes_of(std::array<char, 8>{'G', 'E', 'T', ' ', '/', ' ', 'H', 'T'}), 8);
  EXPECT_NE(interview.objection(), "");
}

TEST(Handshake, AProofIsForOneSecretOneRankAndOneConversation) {
  if (!can_prove()) GTEST_SKIP() << "built without libsodium";
  const Introduction mine = introduce(true);
  const auto is_known = [&](auto&& change) {
    ServerHandshake interview("right", {}, introduce(true));
    const Reply introduced = *say(interview, bytes_of(mine), 1000);
    Hello hello = hello_of(1, 4, "right", mine, introduced);
    change(hello, introduced);
    const Reply reply = *say(interview, bytes_of(hello), 1000);
    EXPECT_EQ(interview.hello() != nullptr, reply.kind == Reply::Kind::welcome);
    EXPECT_EQ(interview.hello() == nullptr,
              interview.objection().find("another secret") != std::string::npos);
    if (interview.hello() == nullptr) {
      EXPECT_THROW(throw_refusal(reply), TransportError);
    }
    return interview.hello() != nullptr;
  };
  Hello overheard;
  EXPECT_TRUE(is_known([&](const Hello& hello, const Reply&) { overheard = hello; }));
  EXPECT_FALSE(is_known([&](Hello& hello, const Reply&) { hello = overheard; }));
  EXPECT_FALSE(is_known([&](Hello& hello, const Reply&) { hello.rank = 2; }));
  EXPECT_FALSE(is_known([&](Hello& hello, const Reply&) { hello.proof = {}; }));
  EXPECT_FALSE(is_known(
      [&](Hello& hello, const Reply& firsts) { hello = hello_of(1, 4, "wrong", mine, firsts); }));
  // What rank 0 proves is of no use to pass for a rank.
  EXPECT_FALSE(is_known([&](Hello& hello, const Reply& firsts) {
    hello.proof = prove_for(Speaker::first, "right", mine.nonce, firsts.introduction.nonce, 1, 4);
  }));
}

TEST(Handshake, ARankOfAnotherRunIsToldWhoseRank0ItHasMet) {
  for (const std::string secret : {"", "right"}) {
    if (!secret.empty() && !can_prove()) continue;
    ServerHandshake interview(secret, run_name("Slurm step 15603.0"), introduce(!secret.empty()));
    const Introduction mine = introduce(!secret.empty());
    const Reply introduced = *say(interview, bytes_of(mine), 1000);
    // Whose secret is another, too.
    Hello hello = hello_of(1, 4, secret.empty() ? "" : "another", mine, introduced);
    hello.run = run_name("Slurm step 4711.0");
    const Reply reply = *say(interview, bytes_of(hello), 1000);
    EXPECT_EQ(reply.kind, Reply::Kind::another_run);
    EXPECT_EQ(text_of(reply.run), "Slurm step 15603.0");
    EXPECT_EQ(interview.hello(), nullptr);
    EXPECT_EQ(interview.objection(),
              "it belongs to another run: Slurm step 4711.0, and this is Slurm step 15603.0");
  }
}

TEST(Handshake, LongNamesOfRunsDiffer) {
  const std::string same(300, 'x');
  EXPECT_EQ(run_name(same + "1"), run_name(same + "1"));
  EXPECT_NE(run_name(same + "1"), run_name(same + "2"));
  EXPECT_NE(run_name("a"), run_name(""));
  detail::Run wild{};
  wild.fill('y');
  EXPECT_EQ(text_of(wild), std::string(wild.size(), 'y'));
  EXPECT_EQ(text_of({}), "one without a name");
}

TEST(Handshake, AnAnswerIsTheErrorOfRank0) {
  const auto answer = [](const auto& error) { return answer_for(std::make_exception_ptr(error)); };
  EXPECT_THROW(throw_refusal(answer(UsageError("u"))), UsageError);
  EXPECT_THROW(throw_refusal(answer(TimeoutError("t"))), TimeoutError);
  EXPECT_THROW(throw_refusal(answer(PeerError("p"))), TransportError);
  EXPECT_NO_THROW(throw_refusal(answer_for(nullptr)));
  Reply wild = answer(UsageError(std::string(2000, 'x')));
  wild.verdict = static_cast<Verdict>(77);
  wild.reason.fill('y');
  EXPECT_THROW(throw_refusal(wild), TransportError);
}

TEST(StoreUrl, NamesAFolderOrAnAddress) {
  EXPECT_EQ(std::get<FileUrl>(parse_store_url("file:///a/b c")).folder, "/a/b c");
  EXPECT_EQ(std::get<UnixUrl>(parse_store_url("unix:///a/s")).path, "/a/s");
  const auto expect = [](const char* text, const char* host, int port) {
    const auto url = std::get<TcpUrl>(parse_store_url(text));
    EXPECT_EQ(url.host, host);
    EXPECT_EQ(url.port, port);
  };
  expect("tcp://node-1.example:29500", "node-1.example", 29500);
  expect("tcp://10.0.0.1:1", "10.0.0.1", 1);
  expect("tcp://[::1]:65535", "::1", 65535);
  expect("tcp://[fe80::1%eth0]:80", "fe80::1%eth0", 80);
}

TEST(StoreUrl, SaysWhatIsWrongWithOthers) {
  const auto expect = [](const std::string& text, const std::string& part) {
    try {
      parse_store_url(text);
      ADD_FAILURE() << text;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("tcp://host:29500"), std::string::npos);
    }
  };
  for (const char* text : {"", "host:80", "http://host:80", "TCP://host:80", "file:/a"}) {
    expect(text, "begins with none of file://, unix:// and tcp://");
  }
  for (const char* text : {"file://", "file://relative", "unix://s"})
    expect(text, "no absolute path");
  for (const char* text : {"tcp://host", "tcp://", "tcp://[::1]", "tcp://[::1]80"}) {
    expect(text, "has no port");
  }
  for (const char* text : {"tcp://h:", "tcp://h:0", "tcp://h:65536", "tcp://h:-1", "tcp://h:8x",
                           "tcp://h: 8", "tcp://h:99999999999999999999"}) {
    expect(text, "a port from 1 to 65535");
  }
  for (const char* text : {"tcp://:80", "tcp://[]:80", "tcp://a/b:80"}) expect(text, "no host");
  expect("tcp://::1:80", "needs brackets");
  expect("tcp://[::1:80", "without a ']'");
  expect(std::string("tcp://a\0b:80", 12), "zero byte");
}

TEST(Contact, IsReadWholeOrNotAtAll) {
  const Contact contact{"boot", "token", {"10.0.0.1", "[::1]"}, 4711};
  const std::string text = to_text(contact);
  const Contact read = parse_contact(text);
  EXPECT_EQ(read.boot, contact.boot);
  EXPECT_EQ(read.token, contact.token);
  EXPECT_EQ(read.addresses, contact.addresses);
  EXPECT_EQ(read.port, contact.port);
  for (std::size_t bytes = 0; bytes + 2 < text.size(); ++bytes) {
    EXPECT_THROW(parse_contact(text.substr(0, bytes)), UsageError) << bytes;
  }
  for (const char* other : {"{}", "[]", "7", "\"rondo\"", "{\"token\": 1}",
                            R"({"boot": "", "token": "", "addresses": [], "port": 1})",
                            R"({"boot": "", "token": "t", "addresses": [1], "port": 1})"}) {
    EXPECT_THROW(parse_contact(other), UsageError) << other;
  }
}

}  // namespace
}  // namespace rondo::detail
