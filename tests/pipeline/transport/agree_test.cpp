// Ranks that were started differently are found out at once, and the odd ones are named.
#include "pipeline/transport/agree.h"

#include <gtest/gtest.h>

#include "pipeline/host/launch.h"
#include "pipeline/transport/thread_transport.h"

namespace antichain {
namespace {

// Returns what each rank is refused with when rank r holds values[r], and "" where it is not.
std::vector<std::string> refusals(const std::vector<std::string>& values) {
  std::vector<std::string> all(values.size());
  run_ranks(int(values.size()), [&](JobTransport& transport) {
    const auto r = size_t(transport.rank());
    try {
      agree(transport, "the version of the program", values[r]);
    } catch (const Error& error) {
      all[r] = error.what();
    }
  });
  return all;
}

TEST(Agree, NamesTheOddRanksOnEveryRank) {
  EXPECT_EQ(refusals({"1", "1", "1"}), std::vector<std::string>(3));
  for (const std::string& text : refusals({"1", "2", "1", "3"}))
    EXPECT_EQ(
        text.find("the version of the program is 2 on rank 1 (" + host_name() + "), but 1 on the others"), 0u)
        << text;
  for (const std::string& text : refusals({"2", "1", "1", "2", "1"}))
    EXPECT_EQ(text.find("the version of the program is 2 on ranks 0, 3 ("), 0u) << text;
}

TEST(Agree, ComparesOneThingAfterTheOtherAndAsksWhatToDo) {
  run_ranks(3, [](JobTransport& transport) {
    const bool odd = transport.rank() == 1;
    const Held held = {{"the size", "3"}, {"the hash", odd ? "b" : "a"}, {"the rest", odd ? "y" : "x"}};
    const auto advice = [](const std::string& name, const std::vector<std::string>& values) {
      return name + " of " + std::to_string(values.size());
    };
    try {
      agree(transport, held, advice, ExitCode::usage);
      ADD_FAILURE() << "ranks that differ are taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(),
                "the hash is b on rank 1 (" + host_name() + "), but a on the others: the hash of 3");
      EXPECT_EQ(error.code(), ExitCode::usage);
    }
    agree(transport, {{"the size", "3"}, {"nothing", ""}}, advice);
  });
}

TEST(Agree, DescribesWhatIsOdd) {
  EXPECT_EQ(describe_odd({"with a", "with a", "with b"}, "was started", "were started"),
            "rank 2 was started with b, the others with a");
  EXPECT_EQ(describe_odd({"with a", "with b", "with b", "with a", "with a"}, "was started", "were started"),
            "ranks 1, 2 were started with b, the others with a");
  EXPECT_EQ(describe_odd({"with a", "with a"}, "was started", "were started"), "");
}

}  // namespace
}  // namespace antichain
