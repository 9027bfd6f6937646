#include "pipeline/schedule/gradient_buckets.h"

#include <algorithm>

#include "framework/error.h"
#include "partition/plan/stage_cost.h"

namespace antichain {
namespace {

constexpr int64_t least_bytes = 256 << 10;
constexpr int most_buckets = 8;

int64_t bytes_of(const Profile& profile, int node) { return profile.nodes[size_t(node)].cost.param_bytes; }

int nodes_with_weights(const Profile& profile, const std::vector<int>& nodes) {
  return int(std::ranges::count_if(nodes, [&](int n) { return bytes_of(profile, n) > 0; }));
}

}  // namespace

int bucket_count(const Profile& profile, const std::vector<int>& nodes) {
  const int64_t bytes = sum_of(profile, nodes).param_bytes;
  const int most = std::clamp(nodes_with_weights(profile, nodes), 1, most_buckets);
  return int(std::clamp<int64_t>(bytes / least_bytes, 1, most));
}

std::vector<GradientBucket> gradient_buckets(const Profile& profile, const Profile& times,
                                             const std::vector<int>& nodes, int count) {
  int left = nodes_with_weights(profile, nodes);  // nodes with weights that are in no bucket yet
  ANTICHAIN_CHECK(count >= 1 && count <= std::max(left, 1), "each bucket has a node with weights");
  const StageSum all = sum_of(profile, times, nodes);
  StageSum passed;
  std::vector<GradientBucket> buckets(1);
  const auto part = [](double some_s, double all_s) { return all_s > 0 ? std::min(some_s / all_s, 1.) : 1.; };
  for (int i = int(nodes.size()) - 1; i >= 0; --i) {
    const size_t n = size_t(nodes[size_t(i)]);
    const StageSum node = sum_of(profile.nodes[n], times.nodes[n]);
    GradientBucket& bucket = buckets.back();
    bucket.bytes += node.param_bytes;
    passed.add(node);
    const int wanted = count - int(buckets.size());  // buckets after this one
    if (node.param_bytes == 0 || wanted == 0) continue;
    --left;
    const bool full = double(passed.param_bytes) * count >= double(all.param_bytes) * double(buckets.size());
    if (!full && left > wanted) continue;
    bucket.first = i;
    bucket.of_backward = part(passed.backward_s, all.backward_s);
    bucket.of_weights = part(passed.late_weight_s, all.late_weight_s);
    buckets.emplace_back();
  }
  for (GradientBucket& bucket : buckets)
    bucket.share =
        all.param_bytes > 0 ? double(bucket.bytes) / double(all.param_bytes) : 1. / double(buckets.size());
  return buckets;
}

int buckets_in(const std::vector<Action>& of_rank, int stage) {
  int count = 0;
  for (const Action& a : of_rank)
    if (a.verb == Verb::reduce && a.stage == stage) count = std::max(count, std::max(a.bucket, 0) + 1);
  return count;
}

int last_gradient(const std::vector<Action>& of_rank, int reduce) {
  for (int i = reduce - 1; i >= 0; --i) {
    const Action& a = of_rank[size_t(i)];
    if (a.stage == of_rank[size_t(reduce)].stage &&
        (a.verb == Verb::backward || a.verb == Verb::backward_weight))
      return i;
  }
  return -1;
}

}  // namespace antichain
