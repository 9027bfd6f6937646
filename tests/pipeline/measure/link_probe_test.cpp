// The link between ranks is measured, the same on every rank, and free where there is none.
#include "pipeline/measure/link_probe.h"

#include <gtest/gtest.h>

#include <memory>

#include "framework/backend.h"
#include "layers/cpu/backend.h"
#include "pipeline/transport/ordered_transport.h"
#include "pipeline/transport/thread_transport.h"
#include "tests/pipeline/fakes/fake_device.h"

namespace antichain {
namespace {

using test::FakeMessages;
using test::Rendezvous;

Context on_the_cpu() {
  register_cpu_backend();
  return Context(backend("cpu"));
}

TEST(LinkProbe, OneRankAloneHasAFreeLink) {
  run_ranks(1, [](JobTransport& t) {
    const Link link = measure_link(t, on_the_cpu());
    EXPECT_EQ(link.bytes_per_s, 0);
    EXPECT_EQ(link.latency_s, 0);
  });
}

TEST(LinkProbe, AllRanksGetTheSameFigures) {
  std::vector<Link> links(3);
  run_ranks(3, [&](JobTransport& t) { links[size_t(t.rank())] = measure_link(t, on_the_cpu()); });
  for (const Link& link : links) {
    EXPECT_EQ(link.bytes_per_s, links[0].bytes_per_s);
    EXPECT_EQ(link.latency_s, links[0].latency_s);
  }
  // Copies between threads: no machine of ours is outside of 10 MB/s to 1 TB/s, or takes a second for 64
  // bytes.
  EXPECT_GT(links[0].bytes_per_s, 1e7);
  EXPECT_LT(links[0].bytes_per_s, 1e12);
  EXPECT_GT(links[0].latency_s, 0);
  EXPECT_LT(links[0].latency_s, 1);
}

// Over one that wants its messages in an order, each round trip is a step.
TEST(LinkProbe, MessagesGoInTheOrderThatTheirTransportKeeps) {
  Rendezvous all(3);
  run_ranks(3, [&](JobTransport& job) {
    const auto ordered =
        make_ordered_transport(job, std::make_unique<FakeMessages>(all, job.rank(), /*host_blocks=*/true));
    EXPECT_GT(measure_link(*ordered, on_the_cpu()).bytes_per_s, 0);
  });
  EXPECT_EQ(all.calls[0][0], "send 4194304 to 1");
  EXPECT_EQ(all.calls[0][1], "recv 4194304 from 1");
  EXPECT_EQ(all.calls[1][0], "recv 4194304 from 0");
}

TEST(LinkProbe, LatencyAndBandwidthAddUpToTheLargeMessage) {
  const Link link = link_between(1e-5, 2.1e-4, 1000);
  EXPECT_NEAR(link.latency_s, 1e-5, 1e-12);
  EXPECT_NEAR(link.bytes_per_s, 5e6, 1);
}

TEST(LinkProbe, TheCoreIsShortOfTheWorkThatItDidNotDoBesideMessages) {
  const std::vector<double> alone_s = {0.001, 0.5, 0.001};  // one was disturbed
  EXPECT_NEAR(share_of_core(alone_s, 700, 1), 0.3, 1e-12);
  EXPECT_EQ(share_of_core(alone_s, 0, 1), 1);
  EXPECT_EQ(share_of_core(alone_s, 1100, 1), 0) << "it is faster than alone where the clock rises";
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
