// The link between ranks is measured, the same on every rank, and free where there is none.
#include "pipeline/link_probe.h"

#include <gtest/gtest.h>

#include <vector>

#include "pipeline/thread_transport.h"

namespace antichain {
namespace {

TEST(LinkProbe, OneRankAloneHasAFreeLink) {
  run_ranks(1, [](Transport& t) {
    const Link link = measure_link(t);
    EXPECT_EQ(link.bytes_per_s, 0);
    EXPECT_EQ(link.latency_s, 0);
  });
}

TEST(LinkProbe, AllRanksGetTheSameFigures) {
  std::vector<Link> links(3);
  run_ranks(3, [&](Transport& t) { links[size_t(t.rank())] = measure_link(t); });
  for (const Link& link : links) {
    EXPECT_EQ(link.bytes_per_s, links[0].bytes_per_s);
    EXPECT_EQ(link.latency_s, links[0].latency_s);
  }
  // Copies between threads: no machine of ours is outside of 10 MB/s to 1 TB/s, or takes a second for 64 bytes.
  EXPECT_GT(links[0].bytes_per_s, 1e7);
  EXPECT_LT(links[0].bytes_per_s, 1e12);
  EXPECT_GT(links[0].latency_s, 0);
  EXPECT_LT(links[0].latency_s, 1);
}

TEST(LinkProbe, LatencyAndBandwidthAddUpToTheLargeMessage) {
  const Link link = link_between(1e-5, 2.1e-4, 1000);
  EXPECT_NEAR(link.latency_s, 1e-5, 1e-12);
  EXPECT_NEAR(link.bytes_per_s, 5e6, 1);
}

// Seen where four ranks shared two cores: a bandwidth of 4e15 bytes/s, which no option takes.
TEST(LinkProbe, ASmallMessageThatIsHeldUpMakesNoBandwidth) {
  for (const double small_s : {1.9e-3, 2e-3, 5e-3}) {
    const Link link = link_between(small_s, 2e-3, 1000);
    EXPECT_DOUBLE_EQ(link.bytes_per_s, 1e6);
    EXPECT_DOUBLE_EQ(link.seconds(1000), 2e-3);
  }
}

}  // namespace
}  // namespace antichain
