// Every word of a schedule's text is written and read, and every way to get one wrong is refused.
#include <gtest/gtest.h>

#include "pipeline/schedule/schedule.h"
#include "tests/expect_error.h"

namespace antichain::test {
namespace {

Action parse_word(const std::string& word) {
  const Schedule schedule = parse_schedule("microbatches 9\nrank 0: " + word + "\nrank 1:\n", "file");
  EXPECT_EQ(schedule.ranks.at(0).size(), 1u);
  return schedule.ranks[0].at(0);
}

TEST(ScheduleText, EveryVerbBothWays) {
  const std::vector<std::pair<Action, std::string>> words = {
      {{Verb::load, 0, 3}, "0L3"},
      {{Verb::forward, 12, 3}, "12F3"},
      {{Verb::backward, 2, 0}, "2B0"},
      {{Verb::backward_input, 2, 1}, "2I1"},
      {{Verb::backward_weight, 2, 1}, "2W1"},
      {{Verb::reduce, 7}, "7A"},
      {{.verb = Verb::reduce, .stage = 7, .bucket = 12}, "7A12"},
      {{Verb::update, 7}, "7U"},
      {{Verb::send, 0, 3, {Flow::activation, 17}, 1}, "0S3:a17>1"},
      {{Verb::send, 1, 3, {Flow::gradient, 17, 21}, 0}, "1S3:g17.21>0"},
      {{Verb::recv, 1, 3, {Flow::activation, 17}, 0}, "1R3:a17<0"},
      {{Verb::recv, 0, 3, {Flow::gradient, 17, 21}, 1}, "0R3:g17.21<1"},
  };
  for (const auto& [action, word] : words) {
    EXPECT_EQ(print(action), word);
    EXPECT_EQ(parse_word(word), action) << word;
  }
}

TEST(ScheduleText, CommentsBlankLinesAndSpacesAreFree) {
  const Schedule schedule = parse_schedule(
      "# mine\n\n  microbatches   2 \n\n# first\nrank 0:  0F0   0F1\t0B0\r\n rank 1:\n", "file");
  EXPECT_EQ(schedule.microbatches, 2);
  ASSERT_EQ(schedule.ranks.size(), 2u);
  EXPECT_EQ(schedule.ranks[0].size(), 3u);
  EXPECT_TRUE(schedule.ranks[1].empty());
}

TEST(ScheduleText, WrongWordsAreNamedWithTheirLine) {
  for (const std::string word :
       {"F0",           "0",         "0X0",      "0F",        "0U0",
        "0Ax",          "0A00",      "0A0:a1>1", "0F-1",      "0F00",
        "00F0",         "0F0x",      "0f0",      "0S0",       "0S0:a1",
        "0S0:a1<1",     "0R0:a1>1",  "0S0:g1>1", "0S0:g1.>1", "0S0:b1>1",
        "0S0:a1>",      "0S0:a1>1>", "0F0:a1>1", "0S0a1>1",   "0F99999999999999999999",
        "0F4294967296", "+1F0",      "0S0:a-1>1"})
    expect_error([&] { parse_schedule("# c\nmicrobatches 2\nrank 0: 0F0 " + word + "\nrank 1:\n", "s.txt"); },
                 {"s.txt:3", "\"" + word + "\"", "not an action"});
}

TEST(ScheduleText, NumbersOutOfRangeAreNamed) {
  expect_error([] { parse_schedule("microbatches 2\nrank 0: 0F2\n", "s.txt"); },
               {"s.txt:2", "\"0F2\"", "2 micro-batches"});
  expect_error([] { parse_schedule("microbatches 2\nrank 0:\nrank 1: 0S0:a1>2\n", "s.txt"); },
               {"s.txt:3", "\"0S0:a1>2\"", "2 ranks"});
}

TEST(ScheduleText, WrongLinesAreNamed) {
  const auto refused = [](const std::string& text, std::initializer_list<std::string> words) {
    expect_error([&] { parse_schedule(text, "s.txt"); }, words);
  };
  refused("", {"s.txt:0", "microbatches"});
  refused("microbatches 2\n", {"s.txt:1", "rank 0:"});
  refused("rank 0: 0F0\n", {"s.txt:1", "rank 0:", "comes first"});
  refused("microbatches 0\nrank 0:\n", {"s.txt:1", "\"0\""});
  refused("microbatches two\nrank 0:\n", {"s.txt:1", "\"two\""});
  refused("microbatches 2 3\nrank 0:\n", {"s.txt:1", "\"3\""});
  refused("microbatches 100000\nrank 0:\n", {"s.txt:1", "65536"});
  refused("microbatches 2\nmicrobatches 2\nrank 0:\n", {"s.txt:2", "twice"});
  refused("microbatches 2\nrank 1:\n", {"s.txt:2", "rank 1:", "0:"});
  refused("microbatches 2\nrank 0:\nrank 0:\n", {"s.txt:3", "1:"});
  refused("microbatches 2\nrank 0 0F0\n", {"s.txt:2"});
  refused("microbatches 2\nranks 0:\n", {"s.txt:2", "\"ranks\""});
}

}  // namespace
}  // namespace antichain::test
